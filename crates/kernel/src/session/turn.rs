//! A turn: what is remembered of it when it is over, and everything while it is open.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval_id::ApprovalId;
use crate::change::{FileChange, UnlistedChanges, UnrecordedChange, net_changes};
use crate::client::Claim;
use crate::event::{ApprovalDecision, Event, RequestedCall, Seq, StopCause, TurnOptions};
use crate::id::{CallId, MessageId, StepId, TurnId};
use crate::message::text_of;
use crate::model::{Channel, ModelRef, Usage};
use crate::policy::{Limits, Rules};
use crate::stamp::Stamp;
use crate::time::Time;
use crate::tool::{Assessment, Ending, Outcome, Placement, ToolKind};

/// A turn at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The turn.
    pub id: TurnId,
    /// The message it answers.
    pub message: MessageId,
    /// The event that brought it.
    pub begins: Seq,
    /// How it stands.
    pub status: TurnStatus,
    /// Where its tools work.
    pub workspace: PathBuf,
    /// What the client asked of it.
    #[serde(default, skip_serializing_if = "TurnOptions::is_default")]
    pub options: TurnOptions,
    /// How often it was begun.
    pub attempts: u32,
    /// When it was last begun.
    pub started: Option<Time>,
    /// When it was last over.
    pub completed: Option<Time>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether its changes passed verification, where there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// What it made of files, in the order it happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Changes that are not listed in `changes`, each with how many of those come before them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_changes: Vec<(usize, UnlistedChanges)>,
    /// What it may have made of files that is not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<UnrecordedChange>,
    /// Whether that was undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverted: bool,
    /// True if what was said later replaced it: it is neither read by models nor shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// Where `message` is among the session's messages.
    pub(crate) message_at: usize,
    /// Where the messages are that models read: the client's and those of the latest attempt.
    pub(crate) read: Vec<usize>,
}

impl Turn {
    /// True if nothing that the turn did to files is recorded.
    pub(crate) fn has_no_changes(&self) -> bool {
        self.more_changes.is_empty() && net_changes(&self.changes).is_empty()
    }
}

/// How a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TurnStatus {
    /// Not begun.
    Pending,
    /// Under way.
    Running,
    /// A person's word is needed.
    WaitingApproval,
    /// Over, and well.
    Succeeded,
    /// Over, badly.
    Failed,
    /// Called off.
    Cancelled,
}

/// The turn that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenTurn {
    /// The turn.
    pub id: TurnId,
    /// Which attempt this is.
    pub attempt: u32,
    /// What the client asked of it.
    pub options: TurnOptions,
    /// Whether the workspace was looked at.
    pub surveyed: bool,
    /// Model calls so far.
    pub steps: u32,
    /// Tokens so far.
    pub usage: Usage,
    /// What it is doing.
    pub phase: Phase,
    /// Why it must end, once it must.
    pub stopping: Option<StopCause>,
    /// Whether it waits for a client's word after a crash.
    pub held: bool,
    /// Whether the workspace may have changed since it was last verified.
    pub dirty: bool,
    /// How often verification failed.
    pub failed_checks: u32,
    /// What verification last said.
    pub verified: Option<bool>,
    /// Calls skipped because they repeat, since a call last brought anything new.
    pub repeats: u32,
    pub(super) clock: TurnTimer,
    pub(super) ran: CallHistory,
}

/// What an open turn is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// The model is being asked.
    Thinking(OpenStep),
    /// Calls are to be judged and run; none at all before the first step.
    Acting(Vec<Call>),
    /// The model gave an answer without calls.
    Answered,
}

/// A model call under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenStep {
    /// The step.
    pub id: StepId,
    /// The model that was asked.
    pub model: ModelRef,
    /// Tokens that it was taken to read at once, where that was written down.
    pub context_window: Option<u64>,
    /// What it wrote so far, in the order it came.
    pub output: Vec<Segment>,
    /// How many bytes that is.
    pub written: u64,
}

/// A run of output of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Which kind.
    pub channel: Channel,
    /// What was written.
    pub text: String,
}

impl OpenStep {
    pub(super) fn write(&mut self, channel: Channel, text: &str) {
        self.written += text.len() as u64;
        match self.output.last_mut() {
            Some(last) if last.channel == channel => last.text.push_str(text),
            _ => self.output.push(Segment { channel, text: text.into() }),
        }
    }
}

/// A call of the current step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// What was asked for.
    pub request: RequestedCall,
    /// How far it is.
    pub phase: CallPhase,
    /// Whether policy asked for it, not the model.
    pub verifies: bool,
    /// When a client that runs it is no longer waited for.
    pub expires: Option<Time>,
    /// The front end whose clients run it; any client may if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<String>,
    /// The client that runs it, once one has claimed it.
    pub claim: Option<Claim>,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallPhase {
    /// Asked for.
    Requested,
    /// The model reads it again.
    InReview {
        /// What it is shown.
        assessment: Assessment,
    },
    /// The model has read it again.
    Reviewed {
        /// What it was shown.
        assessment: Assessment,
        /// What it said; nothing if it could not be asked.
        answer: Option<ApprovalDecision>,
        /// And why.
        comment: String,
    },
    /// A person is asked.
    Asked {
        /// What they are shown.
        assessment: Assessment,
        /// When it counts as "no".
        expires: Option<Time>,
    },
    /// The call may run.
    Allowed,
    /// The call may not run.
    Denied {
        /// Why.
        reason: Option<String>,
    },
    /// The call runs.
    Started(ToolKind, Placement),
    /// The call is over.
    Done(Ending),
}

impl Call {
    /// The call's id.
    pub fn id(&self) -> &CallId {
        &self.request.id
    }

    /// Whether a client should run it, and nobody knows yet what came of it.
    pub fn with_client(&self) -> bool {
        matches!(self.phase, CallPhase::Started(_, Placement::Client))
    }

    pub(super) fn overdue(&self, at: Time) -> bool {
        self.with_client() && self.expires.is_some_and(|expires| at >= expires)
    }

    /// Whether it is over.
    pub fn done(&self) -> bool {
        matches!(self.phase, CallPhase::Done(_))
    }
}

impl OpenTurn {
    /// How much it may take.
    pub fn limits(&self, rules: &Rules) -> Limits {
        let budget = self.options.budget.as_deref().copied().unwrap_or_default();
        budget.limits(&rules.limits)
    }

    pub(super) fn new(id: TurnId, attempt: u32, options: TurnOptions, at: Time) -> Self {
        Self {
            id,
            attempt,
            options,
            surveyed: false,
            steps: 0,
            usage: Usage::default(),
            phase: Phase::Acting(Vec::new()),
            stopping: None,
            held: false,
            dirty: false,
            failed_checks: 0,
            verified: None,
            repeats: 0,
            clock: TurnTimer { started: at, waited: Duration::ZERO, waiting_since: None },
            ran: CallHistory::default(),
        }
    }

    /// The calls of the current step.
    pub fn calls(&self) -> &[Call] {
        match &self.phase {
            Phase::Acting(calls) => calls,
            Phase::Thinking(_) | Phase::Answered => &[],
        }
    }

    /// The call of that id in the current step.
    pub fn call(&self, id: &CallId) -> Option<&Call> {
        self.calls().iter().find(|call| call.id() == id)
    }

    pub(super) fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        match &mut self.phase {
            Phase::Acting(calls) => calls.iter_mut().find(|call| call.id() == id),
            Phase::Thinking(_) | Phase::Answered => None,
        }
    }

    /// The model call under way.
    pub fn step(&self) -> Option<&OpenStep> {
        match &self.phase {
            Phase::Thinking(step) => Some(step),
            Phase::Acting(_) | Phase::Answered => None,
        }
    }

    /// The event that ends a call of this turn.
    pub(super) fn completed(&self, call: &Call, outcome: Outcome, stamp: &Stamp) -> Event {
        Event::CallCompleted {
            turn: self.id.clone(),
            call: call.id().clone(),
            tool: call.request.tool.clone(),
            message: stamp.id(),
            outcome,
        }
    }

    /// The event that closes a model call of this turn which broke off.
    pub(super) fn interrupted(
        &self,
        step: &OpenStep,
        reason: String,
        context_window: Option<u64>,
        stamp: &Stamp,
    ) -> Event {
        let (turn, step, message) =
            (self.id.clone(), step.id.clone(), (step.written > 0).then(|| stamp.id()));
        Event::StepInterrupted { turn, step, message, reason, context_window }
    }

    /// Whether a client runs something for it.
    pub fn waits_for_client(&self) -> bool {
        self.calls().iter().any(Call::with_client)
    }

    /// True if a client has claimed something that is not over.
    pub fn has_claims(&self) -> bool {
        self.calls().iter().any(|call| call.claim.is_some())
    }

    /// A turn that is held is a question, too: whether to go on.
    pub fn question(&self) -> Option<ApprovalId> {
        self.held.then(|| ApprovalId::Turn(self.id.clone()))
    }

    /// Whether this is a question of the turn itself.
    pub(super) fn asks(&self, question: &ApprovalId) -> bool {
        let is_asked = |call: &Call| matches!(call.phase, CallPhase::Asked { .. });
        match question {
            ApprovalId::Call(call) => self.call(call).is_some_and(is_asked),
            ApprovalId::Turn(_) => self.question().as_ref() == Some(question),
        }
    }

    /// Whether a person's word is needed.
    pub fn waits_for_approval(&self) -> bool {
        self.calls().iter().any(|call| matches!(call.phase, CallPhase::Asked { .. }))
    }
}

/// How long a turn has worked. Waiting for people does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnTimer {
    started: Time,
    waited: Duration,
    waiting_since: Option<Time>,
}

impl TurnTimer {
    pub(super) fn pause(&mut self, at: Time) {
        self.waiting_since.get_or_insert(at);
    }

    pub(super) fn resume(&mut self, at: Time) {
        if let Some(since) = self.waiting_since.take() {
            self.waited += at.since(since);
        }
    }

    /// Time that does not count, unless the clock stands still anyway.
    pub(super) fn skip(&mut self, span: Duration) {
        if self.waiting_since.is_none() {
            self.waited = self.waited.saturating_add(span);
        }
    }

    /// When the time is up; nothing while it stands still.
    pub(super) fn deadline(&self, allowed: Duration) -> Option<Time> {
        match self.waiting_since {
            Some(_) => None,
            None => Some(self.started.after(allowed.saturating_add(self.waited))),
        }
    }
}

/// How often the same daemon call runs while nothing changes, its result included. Polling a log is
/// fine; the next one is taken for a loop.
const IDENTICAL_CALLS_LIMIT: u32 = 4;

/// Which calls ran in this turn, to notice a model that goes in circles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CallHistory {
    /// How often the workspace, memory or a client's world may have changed.
    changes: u32,
    /// The calls of the daemon, by their fingerprints.
    seen: HashMap<u64, CallRepeats>,
}

/// How often one call ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct CallRepeats {
    /// How often in a row, while nothing changed.
    times: u32,
    /// The number of changes when it was last over.
    changes: u32,
    /// The fingerprint of what it last returned.
    result: u64,
}

impl CallHistory {
    /// Notes that a call is over; says whether it brought anything new. What a client runs changes a
    /// world that is not seen from here.
    pub(super) fn note(
        &mut self,
        (kind, placement): (ToolKind, Placement),
        request: &RequestedCall,
        outcome: &Outcome,
    ) -> bool {
        let before = self.changes;
        if placement == Placement::Client || kind.changes_visible_state() {
            self.changes += 1;
        }
        // What a crash cut off may be worth another try.
        if placement == Placement::Client || outcome.ending == Ending::Interrupted {
            return placement == Placement::Client;
        }
        let result = result_fingerprint(outcome);
        let seen = self.seen.entry(call_fingerprint(&request.tool, &request.input));
        let seen = seen.or_insert(CallRepeats { times: 0, changes: before, result });
        let same = seen.changes == before && seen.result == result;
        let times = if same { seen.times + 1 } else { 1 };
        *seen = CallRepeats { times, changes: self.changes, result };
        times == 1
    }

    /// True if the very same call ran too often while nothing changed.
    pub(super) fn repeats(&self, tool: &str, input: &Value) -> bool {
        self.seen
            .get(&call_fingerprint(tool, input))
            .is_some_and(|seen| seen.changes == self.changes && seen.times >= IDENTICAL_CALLS_LIMIT)
    }
}

/// Object keys are sorted in our JSON values, so equal arguments print equally.
fn call_fingerprint(tool: &str, input: &Value) -> u64 {
    fnv1a([tool, &input.to_string()])
}

fn result_fingerprint(outcome: &Outcome) -> u64 {
    let text = text_of(&outcome.parts);
    let files = outcome.artifacts.iter().map(|file| file.blob.as_str());
    fnv1a([&*text].into_iter().chain(files))
}

/// Snapshots keep these, so they must be the same in every release.
fn fnv1a<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    // No text has this byte, so texts do not run into each other.
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
