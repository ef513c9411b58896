//! Turns: the record of each, and the full state of the open one.

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
use crate::session::questions::OpenQuestion;
use crate::stamp::Stamp;
use crate::time::Time;
use crate::tool::{Assessment, Ending, Outcome, Placement, ToolKind};

/// The record of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The turn.
    pub id: TurnId,
    /// The message that it answers.
    pub message: MessageId,
    /// The event that added the message.
    pub begins: Seq,
    /// The current status.
    pub status: TurnStatus,
    /// The folder in which its tools work.
    pub workspace: PathBuf,
    /// Options of the turn.
    #[serde(default, skip_serializing_if = "TurnOptions::is_default")]
    pub options: TurnOptions,
    /// Number of attempts.
    pub attempts: u32,
    /// When the last attempt started.
    pub started: Option<Time>,
    /// When the last attempt ended.
    pub completed: Option<Time>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The result of the verification, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// File changes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Unlisted changes, each with the number of `changes` before them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_changes: Vec<(usize, UnlistedChanges)>,
    /// Changes that may have happened and were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<UnrecordedChange>,
    /// True if the changes are reverted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverted: bool,
    /// True if a later message replaced the turn: it is neither read by models nor shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// The position of `message`.
    pub(crate) message_at: usize,
    /// Positions of the messages that models read: the client's and those of the last
    /// attempt.
    pub(crate) read: Vec<usize>,
}

impl Turn {
    /// True if no file changes of the turn are recorded.
    pub(crate) fn has_no_changes(&self) -> bool {
        self.more_changes.is_empty() && net_changes(&self.changes).is_empty()
    }
}

/// The status of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TurnStatus {
    /// Not started.
    Pending,
    /// In progress.
    Running,
    /// A call waits for approval.
    WaitingApproval,
    /// Succeeded.
    Succeeded,
    /// Failed.
    Failed,
    /// Cancelled.
    Cancelled,
}

/// The open turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenTurn {
    /// The turn.
    pub id: TurnId,
    /// The number of the attempt.
    pub attempt: u32,
    /// Options of the turn.
    pub options: TurnOptions,
    /// True if the workspace was described.
    pub surveyed: bool,
    /// Model calls so far.
    pub steps: u32,
    /// Tokens so far.
    pub usage: Usage,
    /// The current phase.
    pub phase: Phase,
    /// Why it must end, if it must.
    pub stopping: Option<StopCause>,
    /// True if it waits for a client's decision after a restart.
    pub held: bool,
    /// True if the workspace may have changed since the last verification.
    pub dirty: bool,
    /// Number of failed verifications.
    pub failed_checks: u32,
    /// The result of the last verification.
    pub verified: Option<bool>,
    /// Repeated calls that were skipped since a call last returned something new.
    pub repeats: u32,
    /// Questions of running calls that wait for an answer, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<OpenQuestion>,
    pub(super) clock: TurnTimer,
    pub(super) ran: CallHistory,
}

/// What the open turn is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// A model call is in progress.
    Thinking(OpenStep),
    /// Calls are decided and run; empty before the first step.
    Acting(Vec<Call>),
    /// The model responded without calls.
    Answered,
}

/// A model call in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenStep {
    /// The step.
    pub id: StepId,
    /// The called model.
    pub model: ModelRef,
    /// The assumed context window in tokens, if it was recorded.
    pub context_window: Option<u64>,
    /// The output so far, in order.
    pub output: Vec<Segment>,
    /// Length of the output in bytes.
    pub written: u64,
}

/// Consecutive output of one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// The kind of output.
    pub channel: Channel,
    /// The text.
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
    /// The requested call.
    pub request: RequestedCall,
    /// The current phase.
    pub phase: CallPhase,
    /// True if policy requested the call, not the model.
    pub verifies: bool,
    /// When a call that a client runs times out.
    pub expires: Option<Time>,
    /// The front end whose clients run it; any client may if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<String>,
    /// The client that claimed it.
    pub claim: Option<Claim>,
}

/// The phase of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallPhase {
    /// Requested by the model.
    Requested,
    /// A model reviews it.
    InReview {
        /// What the reviewer is shown.
        assessment: Assessment,
    },
    /// A model reviewed it.
    Reviewed {
        /// What the reviewer was shown.
        assessment: Assessment,
        /// The result; `None` if the review failed.
        answer: Option<ApprovalDecision>,
        /// The reason.
        comment: String,
    },
    /// The call waits for approval.
    Asked {
        /// What the person is shown.
        assessment: Assessment,
        /// When the request counts as denied.
        expires: Option<Time>,
    },
    /// The call may run.
    Allowed,
    /// The call was denied.
    Denied {
        /// The reason.
        reason: Option<String>,
    },
    /// The call runs.
    Started(ToolKind, Placement),
    /// The call has ended.
    Done(Ending),
}

impl Call {
    /// The call's id.
    pub fn id(&self) -> &CallId {
        &self.request.id
    }

    /// True while a client should run it.
    pub fn with_client(&self) -> bool {
        matches!(self.phase, CallPhase::Started(_, Placement::Client))
    }

    pub(super) fn overdue(&self, at: Time) -> bool {
        self.with_client() && self.expires.is_some_and(|expires| at >= expires)
    }

    /// True if the call has ended.
    pub fn done(&self) -> bool {
        matches!(self.phase, CallPhase::Done(_))
    }
}

impl OpenTurn {
    /// The limits of the turn.
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
            questions: Vec::new(),
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

    /// The running model call.
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

    /// The event that ends an interrupted model call of this turn.
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

    /// True while a client should run a call.
    pub fn waits_for_client(&self) -> bool {
        self.calls().iter().any(Call::with_client)
    }

    /// True if a client claimed a call that has not ended.
    pub fn has_claims(&self) -> bool {
        self.calls().iter().any(|call| call.claim.is_some())
    }

    /// The approval request of a held turn.
    pub fn question(&self) -> Option<ApprovalId> {
        self.held.then(|| ApprovalId::Turn(self.id.clone()))
    }

    /// True if this is an open approval request of the turn itself.
    pub(super) fn asks(&self, question: &ApprovalId) -> bool {
        let is_asked = |call: &Call| matches!(call.phase, CallPhase::Asked { .. });
        match question {
            ApprovalId::Call(call) => self.call(call).is_some_and(is_asked),
            ApprovalId::Turn(_) => self.question().as_ref() == Some(question),
            ApprovalId::Question(id) => self.questions.iter().any(|open| open.id == *id),
        }
    }

    /// True if a call waits for approval.
    pub fn waits_for_approval(&self) -> bool {
        self.calls().iter().any(|call| matches!(call.phase, CallPhase::Asked { .. }))
    }
}

/// The working time of a turn, without the time spent waiting for people.
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

    /// Excludes time, unless the timer is paused anyway.
    pub(super) fn skip(&mut self, span: Duration) {
        if self.waiting_since.is_none() {
            self.waited = self.waited.saturating_add(span);
        }
    }

    /// When the time is up; `None` while paused.
    pub(super) fn deadline(&self, allowed: Duration) -> Option<Time> {
        match self.waiting_since {
            Some(_) => None,
            None => Some(self.started.after(allowed.saturating_add(self.waited))),
        }
    }
}

/// How often an identical call may run while nothing changes, its result included. Polling a
/// log is fine; further calls count as a loop.
const IDENTICAL_CALLS_LIMIT: u32 = 4;

/// The calls of a turn, to detect loops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CallHistory {
    /// How often the workspace, memory or a client's state may have changed.
    changes: u32,
    /// The daemon's calls, by fingerprint.
    seen: HashMap<u64, CallRepeats>,
}

/// How often a call ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct CallRepeats {
    /// Consecutive runs without a change.
    times: u32,
    /// The number of changes when it last ended.
    changes: u32,
    /// The fingerprint of its last result.
    result: u64,
}

impl CallHistory {
    /// Records the end of a call; true if it returned something new. A client's calls
    /// change state that is not visible here.
    pub(super) fn record_end(
        &mut self,
        (kind, placement): (ToolKind, Placement),
        request: &RequestedCall,
        outcome: &Outcome,
    ) -> bool {
        let before = self.changes;
        if placement == Placement::Client || kind.changes_visible_state() {
            self.changes += 1;
        }
        // A call that a crash interrupted may be repeated.
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

/// Object keys are sorted in our JSON values, so equal arguments have equal text.
fn call_fingerprint(tool: &str, input: &Value) -> u64 {
    fnv1a([tool, &input.to_string()])
}

fn result_fingerprint(outcome: &Outcome) -> u64 {
    let text = text_of(&outcome.parts);
    let files = outcome.artifacts.iter().map(|file| file.blob.as_str());
    fnv1a([&*text].into_iter().chain(files))
}

/// Snapshots contain these hashes, so they must be the same in every release.
fn fnv1a<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    // No UTF-8 text contains this byte, so it separates the texts.
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
