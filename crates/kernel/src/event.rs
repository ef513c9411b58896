//! Events: what happened in a session. A journal is a list of these, numbered from 1.
//!
//! The serialized form of [`Event`] is the journal's format (see [`crate::codec`]): fields may
//! be added with a default, never renamed or removed. No protocol exposes these types.

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
use crate::id::{CallId, MessageId, QuestionId, SessionId, StepId, TurnId};
use crate::message::{Attachment, Part, Role};
use crate::model::{Channel, FinishReason, ModelRef, Sealed, Usage};
use crate::question::{Question, QuestionAnswer};
use crate::time::Time;
use crate::tool::{Assessment, Outcome, Placement, Risk, ToolKind};
use crate::toolset::Toolset;

pub use options::{ApprovalMode, Budget, RareOptions, Setup, ToolUse, TurnOptions};
pub use subagent::{Delegation, SubagentUpdate};
pub use turn::Ended;

/// The number of an event in its session, from 1 on; 0 means "before the first".
pub type Seq = u64;

/// An event with its number and time.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The sequence number.
    pub seq: Seq,
    /// When the event was decided.
    pub at: Time,
    /// The event.
    pub event: Event,
}

/// Something that happened in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The session was created.
    SessionCreated(NewSession),
    /// The session was forked from another one: all events up to and including `at` are
    /// shared. A turn that is open there counts as interrupted here.
    Forked { parent: SessionId, at: Seq },
    /// A label was set or, without a value, removed.
    Labelled { key: String, value: Option<String> },
    /// Later turns use this model.
    ModelSwitched { model: ModelRef },
    /// The client's system prompt changed, from the next step on.
    Instructed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<String>,
    },
    /// Tools work in this folder from now on.
    Moved { workspace: PathBuf },
    /// Models no longer read messages up to and including this one.
    Forgotten { upto: MessageId },
    /// This turn and those after it were replaced: models no longer read them, and the conversation
    /// is shown without them. The next message takes their place.
    Superseded { from: TurnId },
    /// A front end chose the tools that models are offered.
    ToolsChosen(Toolset),
    /// A file was added.
    AttachmentAdded(Attachment),
    /// A client added a message. `turn` is the turn that answers it with these `options`;
    /// `nth` is its number in the session (0 in journals that did not record it).
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
    /// A turn started, for the `attempt`th time.
    TurnStarted { turn: TurnId, attempt: u32, options: TurnOptions },
    /// The workspace was described for the turn's model. `sections` are those that changed;
    /// `tokens` is an estimate of their size.
    ContextGathered { turn: TurnId, sections: Vec<Section>, tokens: u64 },
    /// A model call started. `context_window` is the model's assumed limit in tokens; from
    /// here on prompts shorten the tool results up to and including the message
    /// `shortened`.
    StepStarted {
        turn: TurnId,
        step: StepId,
        model: ModelRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortened: Option<MessageId>,
    },
    /// Output of the step, from `offset` bytes on (both channels counted together).
    /// `pieces` are the lengths in bytes in which followers received it; empty for one
    /// piece.
    TextAppended {
        turn: TurnId,
        step: StepId,
        offset: u64,
        channel: Channel,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pieces: Vec<u32>,
    },
    /// The provider could not respond yet and is called again after `wait_ms`.
    ModelRetrying { turn: TurnId, step: StepId, attempt: u32, wait_ms: u64, reason: String },
    /// The model's response is complete. `message` is its message, if it wrote any text or
    /// calls; `sealed` are provider data to send back with it. `by` is the model that
    /// responded, if it differs from the one called.
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
    /// The model's response was interrupted. The text so far is kept as `message` for users and not
    /// sent to models. If the prompt was too long and could not be summarized,
    /// `context_window` is the limit assumed for the rest of the turn.
    StepInterrupted {
        turn: TurnId,
        step: StepId,
        message: Option<MessageId>,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    },
    /// Policy requires that the workspace is verified before the turn ends.
    VerificationRequested { turn: TurnId, call: RequestedCall },
    /// A model reviews the change before it is made.
    ReviewRequested { turn: TurnId, call: CallId, tool: String, assessment: Assessment },
    /// The result of the review; `answer` is `None` if the review failed.
    Reviewed {
        turn: TurnId,
        call: CallId,
        tool: String,
        answer: Option<ApprovalDecision>,
        comment: String,
        usage: Usage,
    },
    /// The call waits for a person's approval, until `expires`.
    ApprovalRequested {
        turn: TurnId,
        call: CallId,
        tool: String,
        input: Value,
        assessment: Assessment,
        expires: Option<Time>,
    },
    /// The reply to an approval request; only the first reply to a call is recorded.
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
    /// The call started. Without a later [`Event::CallCompleted`] its effects are unknown.
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
    /// The running call asks the user something, until `expires`.
    QuestionAsked {
        turn: TurnId,
        call: CallId,
        tool: String,
        id: QuestionId,
        question: Box<Question>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Time>,
    },
    /// The question is closed; only the first answer to it is recorded. `by` is `None` if nobody
    /// answered because the call or its turn ended.
    QuestionAnswered {
        turn: TurnId,
        call: CallId,
        tool: String,
        id: QuestionId,
        answer: QuestionAnswer,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<DecidedBy>,
    },
    /// A client claimed the call and alone may run it.
    CallClaimed { turn: TurnId, call: CallId, by: ClientRef },
    /// The connection of the client that claimed the call was lost; the client may return
    /// until `until`.
    ClaimHolderLost { turn: TurnId, call: CallId, by: ClientRef, until: Time },
    /// The client did not return in time: any client may claim the call, which is safe to
    /// repeat.
    ClaimReleased { turn: TurnId, call: CallId },
    /// The call ended; `message` is the tool result that models read.
    CallCompleted { turn: TurnId, call: CallId, tool: String, message: MessageId, outcome: Outcome },
    /// A subagent reported to the session whose call started it.
    Subagent { turn: TurnId, call: CallId, session: SessionId, news: SubagentUpdate },
    /// The turn must end; its running calls are being stopped.
    StopRequested { turn: TurnId, cause: StopCause },
    /// The turn continues after a restart. The `after_ms` milliseconds in between do not
    /// count as its time.
    TurnResumed { turn: TurnId, after_ms: u64 },
    /// The turn waits for a client's decision whether to continue after a restart.
    TurnHeld { turn: TurnId, reason: String },
    /// A held turn continues.
    TurnReleased { turn: TurnId },
    /// The turn succeeded. `verified` is the result of the verification, if there was one.
    TurnCompleted { turn: TurnId, usage: Usage, verified: Option<bool> },
    /// The turn failed.
    TurnFailed { turn: TurnId, code: FailureCode, message: String, usage: Usage },
    /// The turn was cancelled.
    TurnCancelled { turn: TurnId, reason: Option<String>, usage: Usage },
    /// The turn's file changes are being reverted or reapplied.
    RevertRequested { turn: TurnId },
    /// The file changes of a turn were reverted or, if `reapplied`, made again. `files` are
    /// the first paths and `more` is the number of further ones.
    Reverted {
        turn: TurnId,
        files: Vec<String>,
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reapplied: bool,
    },
    /// The file changes of a turn could not be reverted; no file was changed.
    RevertFailed { turn: TurnId, reason: String },
    /// The history up to and including `upto`, which may be in the middle of the open turn,
    /// is being summarized. `overflow` is true if the provider rejected the prompt as too
    /// long.
    CompactionRequested {
        upto: MessageId,
        tokens: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        overflow: bool,
    },
    /// Models read this summary instead of the history up to and including `upto`. `facts`
    /// are what the summary names as worth storing in memory.
    Compacted {
        upto: MessageId,
        summary: String,
        messages: u64,
        tokens_before: u64,
        /// Estimated number of tokens that models read from now on; `None` if no number is known
        /// for the history before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens_after: Option<u64>,
        usage: Usage,
        #[serde(default, skip_serializing_if = "TurnCounts::is_unknown")]
        turns: TurnCounts,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        facts: Vec<String>,
    },
    /// The summary could not be written; the history is unchanged.
    CompactionFailed { reason: String },
    /// The facts of the summary up to `upto` were written to this memory file.
    MemorySaved { upto: MessageId, path: String },
    /// The facts of the summary up to `upto` could not be written to memory.
    MemoryNotSaved { upto: MessageId, reason: String },
    /// The session was closed; another message opens it again. `summary` is the beginning
    /// of the last model message.
    SessionClosed {
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
}

/// Number of turns that models read in full before and after a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCounts {
    /// Turns before the compaction.
    pub before: u64,
    /// Turns after the compaction.
    pub after: u64,
}

impl TurnCounts {
    /// True if the numbers were not recorded.
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How a session starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSession {
    /// The folder in which tools work.
    pub workspace: PathBuf,
    /// The client's system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The model, if the client chooses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Labels of front ends.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The tools, if the client chooses them; recorded as [`Event::ToolsChosen`].
    #[serde(skip)]
    pub toolset: Option<Box<Toolset>>,
}

/// A tool call that a model requested, with its final id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The id, unique in the session.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The arguments; a string if the model did not write valid JSON.
    pub input: Value,
    /// What is wrong with the arguments, if they are not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
}

/// What a client needs to run a call, in addition to the call itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCallInfo {
    /// The risk of the tool.
    pub risk: Risk,
    /// The model's text before the call, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the call times out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// The front end whose clients run the call; any client may if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<String>,
}

/// The decision on an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The call may run.
    Allow,
    /// The call may not run.
    Deny,
}

/// What an approval decision came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A client.
    Client,
    /// The approval timed out.
    Clock,
    /// A remembered decision of a client for calls like this one.
    Memory,
}

/// The calls that an approval decision applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RememberScope {
    /// This call.
    #[default]
    Once,
    /// All calls with the same tool and arguments in this session.
    Same,
    /// All similar calls, as the tool defines similarity, in this session.
    Similar,
}

impl RememberScope {
    fn is_once(&self) -> bool {
        *self == Self::Once
    }
}

/// Why a turn must end early.
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
    /// The model call failed.
    Model(crate::model::FailureKind),
    /// An approval was denied, and policy ends the turn for that.
    Denied,
    /// Too many model calls.
    StepLimit,
    /// Too many tokens.
    TokenLimit,
    /// The turn took too long.
    TimeLimit,
    /// The model repeated the same call too often.
    Loop,
    /// Verification failed too often.
    Unverified,
    /// The daemon stopped during the turn, and policy ends the turn for that.
    Interrupted,
}

impl FailureCode {
    /// The name used in protocols.
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
