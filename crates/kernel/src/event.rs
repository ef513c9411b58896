//! What happened. A session's journal is a list of these, numbered from 1.
//!
//! The serialized form of [`Event`] is the journal's format (see [`crate::codec`]): fields may be
//! added with a default, never renamed or removed. No protocol shows these types.

mod blobs;
mod options;
mod subagent;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::ClientRef;
use crate::context::Section;
use crate::id::{CallId, MessageId, SessionId, StepId, TurnId};
use crate::message::{Attachment, Part, Role};
use crate::model::{Channel, FinishReason, ModelRef, Sealed, Usage};
use crate::time::Time;
use crate::tool::{Assessment, Outcome, Placement, Risk, ToolKind};
use crate::toolset::Toolset;

pub use options::{ApprovalMode, Budget, RareOptions, Setup, ToolUse, TurnOptions};
pub use subagent::{Delegation, SubagentUpdate};
pub use turn::Ended;

/// The number of an event in its session; 0 stands for "before the first".
pub type Seq = u64;

/// An event in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The sequence number.
    pub seq: Seq,
    /// When it was decided.
    pub at: Time,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The session began.
    SessionCreated(NewSession),
    /// The session began as a branch of another one's history: all events up to and including `at`
    /// are shared with it. A turn that was under way there is not under way here.
    Forked { parent: SessionId, at: Seq },
    /// A front end's own note on the session was set or, without a value, removed.
    Labelled { key: String, value: Option<String> },
    /// Later turns use this model.
    ModelSwitched { model: ModelRef },
    /// The client's standing instructions are these from the next step on; none if not given.
    Instructed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<String>,
    },
    /// Tools work here from now on.
    Moved { workspace: PathBuf },
    /// Models read nothing any more of what was said up to and including this message.
    Forgotten { upto: MessageId },
    /// This turn and those after it were replaced: models do not read them any more, and the
    /// conversation is shown without them. What is said next stands in their place.
    Superseded { from: TurnId },
    /// A front end chose the tools that models are offered.
    ToolsChosen(Toolset),
    /// A file was handed over.
    AttachmentAdded(Attachment),
    /// A client said something; `turn` is the turn that will answer it, as `options` say, and the
    /// `nth` of the session (0 where that was not written down yet).
    MessageAdded {
        message: MessageId,
        turn: TurnId,
        role: Role,
        parts: Vec<Part>,
        #[serde(default, skip_serializing_if = "TurnOptions::is_default")]
        options: TurnOptions,
        #[serde(default, skip_serializing_if = "is_zero")]
        nth: u64,
    },
    /// The agent set to work on a turn, for the `attempt`th time.
    TurnStarted { turn: TurnId, attempt: u32, options: TurnOptions },
    /// The workspace was looked at. Models are told of these sections, which are other than before;
    /// they count so many tokens, by a rule of thumb.
    ContextGathered { turn: TurnId, sections: Vec<Section>, tokens: u64 },
    /// The model is being asked. It was taken to read `context_window` tokens at once; from here on
    /// prompts have the results up to and including the message `shortened` only in short.
    StepStarted {
        turn: TurnId,
        step: StepId,
        model: ModelRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortened: Option<MessageId>,
    },
    /// Output of the step, from `offset` bytes on (both channels counted together). `pieces` are the
    /// lengths of the pieces in which followers got it, in bytes; nothing where it was one piece.
    TextAppended {
        turn: TurnId,
        step: StepId,
        offset: u64,
        channel: Channel,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pieces: Vec<u32>,
    },
    /// The provider could not answer yet and is asked again.
    ModelRetrying { turn: TurnId, step: StepId, attempt: u32, wait_ms: u64, reason: String },
    /// The model's answer is whole; `message` is what it said, if anything, with what it `sealed`.
    /// `by` is who answered, where that is not the model that was asked.
    ModelCompleted {
        turn: TurnId,
        step: StepId,
        message: Option<MessageId>,
        finish: FinishReason,
        calls: Vec<RequestedCall>,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sealed: Vec<Sealed>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<ModelRef>,
    },
    /// The answer broke off. What there is of it, if anything, is kept as `message`, but not
    /// sent to models. Where the prompt was too long for the model and could not be summarized, the
    /// model is taken to read only `context_window` tokens at once for the rest of the turn.
    StepInterrupted {
        turn: TurnId,
        step: StepId,
        message: Option<MessageId>,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    },
    /// Policy wants the workspace checked before the turn ends.
    VerificationRequested { turn: TurnId, call: RequestedCall },
    /// The model reads a change again before it is made.
    ReviewRequested { turn: TurnId, call: CallId, tool: String, assessment: Assessment },
    /// A reviewer looked at the change; no answer means that the review was not possible.
    Reviewed {
        turn: TurnId,
        call: CallId,
        tool: String,
        answer: Option<ApprovalDecision>,
        comment: String,
        usage: Usage,
    },
    /// A person's word is needed.
    ApprovalRequested {
        turn: TurnId,
        call: CallId,
        tool: String,
        input: Value,
        assessment: Assessment,
        expires: Option<Time>,
    },
    /// An approval was answered; the first answer counts.
    ApprovalAnswered {
        turn: TurnId,
        call: CallId,
        tool: String,
        answer: ApprovalDecision,
        reason: Option<String>,
        by: DecidedBy,
        #[serde(default, skip_serializing_if = "RememberScope::is_once")]
        remember: RememberScope,
    },
    /// The call runs from here on; whoever reads this and no end does not know how far it got.
    CallStarted {
        turn: TurnId,
        call: CallId,
        tool: String,
        input: Value,
        kind: ToolKind,
        placement: Placement,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errand: Option<ClientCallInfo>,
    },
    /// A client has the call and alone may run it.
    CallClaimed { turn: TurnId, call: CallId, by: ClientRef },
    /// The connection of the client that has the call is gone; the client may come back until then.
    ClaimHolderLost { turn: TurnId, call: CallId, by: ClientRef, until: Time },
    /// The client did not come back: any client may have the call, which may be repeated.
    ClaimReleased { turn: TurnId, call: CallId },
    /// The call is over; `message` is what the model is told.
    CallCompleted { turn: TurnId, call: CallId, tool: String, message: MessageId, outcome: Outcome },
    /// There is news of a session that works for a call.
    Subagent { turn: TurnId, call: CallId, session: SessionId, news: SubagentUpdate },
    /// The turn must end; what runs for it is being stopped.
    StopRequested { turn: TurnId, cause: StopCause },
    /// The turn goes on after a crash; for so long nobody worked on it.
    TurnResumed { turn: TurnId, after_ms: u64 },
    /// The turn waits for a client's word before it goes on after a crash.
    TurnHeld { turn: TurnId, reason: String },
    /// A turn that waited for a client's decision goes on.
    TurnReleased { turn: TurnId },
    /// The turn ended well. `verified` says whether its changes passed, where there were any.
    TurnCompleted { turn: TurnId, usage: Usage, verified: Option<bool> },
    /// The turn ended badly.
    TurnFailed { turn: TurnId, code: FailureCode, message: String, usage: Usage },
    /// The turn was called off.
    TurnCancelled { turn: TurnId, reason: Option<String>, usage: Usage },
    /// The turn's changes of files are being undone.
    RevertRequested { turn: TurnId },
    /// The changes of a turn are undone or, if they were undone before, made again. `files` are the
    /// first of them, and `more` is how many there are beside those.
    Reverted {
        turn: TurnId,
        files: Vec<String>,
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reapplied: bool,
    },
    /// The changes of a turn could not be undone; all files are as they were.
    RevertFailed { turn: TurnId, reason: String },
    /// History up to and including `upto`, which may be in the middle of the open turn, is being
    /// summarized; `overflow` if the provider said that a prompt with all of it is too long.
    CompactionRequested {
        upto: MessageId,
        tokens: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        overflow: bool,
    },
    /// Models read this summary instead of the history up to and including `upto`.
    /// `facts` are what the model named as worth keeping in memory.
    Compacted {
        upto: MessageId,
        summary: String,
        messages: u64,
        tokens_before: u64,
        /// About how many a model reads from now on; unknown where it is not known how many it read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens_after: Option<u64>,
        usage: Usage,
        #[serde(default, skip_serializing_if = "TurnCounts::is_unknown")]
        turns: TurnCounts,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        facts: Vec<String>,
    },
    /// The summary could not be made; the history stays as it is.
    CompactionFailed { reason: String },
    /// The facts of the summary up to `upto` are in this file of memory.
    MemorySaved { upto: MessageId, path: String },
    /// The facts could not be written to memory.
    MemoryNotSaved { upto: MessageId, reason: String },
    /// The session is done with; another message opens it again.
    /// `summary` says in short how it ended.
    SessionClosed {
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
}

/// How many turns models read in full before and after a summary was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCounts {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

impl TurnCounts {
    /// Whether it was not written down.
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how serde asks")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How a session begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSession {
    /// Where its tools work.
    pub workspace: PathBuf,
    /// Standing instructions of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The model, where the client names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Front ends' own notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The tools, where the client chooses them; recorded as [`Event::ToolsChosen`].
    #[serde(skip)]
    pub toolset: Option<Box<Toolset>>,
}

/// A tool call, named and ready to be judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The id, unique in the session.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The arguments; a string where the model did not write JSON.
    pub input: Value,
    /// What is wrong with the arguments, if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
}

/// What a client is told of a call that it should run, beside the call itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCallInfo {
    /// How bad it can get.
    pub risk: Risk,
    /// What the model said of it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// The front end whose clients run it; any client may if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<String>,
}

/// A person's word on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The call may run.
    Allow,
    /// The call may not run.
    Deny,
}

/// The source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A client.
    Client,
    /// The approval timed out.
    Clock,
    /// A client, earlier, for all calls like this one.
    Memory,
}

/// For which calls an answer counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RememberScope {
    /// For this one.
    #[default]
    Once,
    /// For every one with the same tool and arguments, in this session.
    Same,
    /// For every similar one, as the tool sees it, in this session.
    Similar,
}

impl RememberScope {
    fn is_once(&self) -> bool {
        *self == Self::Once
    }
}

/// Why a turn must end before it is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// A client cancelled the turn.
    Cancelled { reason: Option<String> },
    /// The turn failed.
    Failed { code: FailureCode, message: String },
}

/// Why a turn failed, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The model could not be asked, or its answer could not be used.
    Model(crate::model::FailureKind),
    /// A person said no, and policy says that ends it.
    Denied,
    /// Too many model calls.
    StepLimit,
    /// Too many tokens.
    TokenLimit,
    /// Too long.
    TimeLimit,
    /// The same call over and over.
    Loop,
    /// The changes never passed verification.
    Unverified,
    /// The daemon died, and policy says that ends it.
    Interrupted,
}

impl FailureCode {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model(kind) => kind.name(),
            Self::Denied => "approval_denied",
            Self::StepLimit => "step_limit",
            Self::TokenLimit => "token_limit",
            Self::TimeLimit => "time_limit",
            Self::Loop => "repeated_call",
            Self::Unverified => "verification_failed",
            Self::Interrupted => "interrupted",
        }
    }
}
