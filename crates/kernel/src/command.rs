//! Commands: the only way to change a session, for clients and for the runtime's own reports.
//!
//! Commands are serialized only on their way between nodes of one version; the journal has none.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval_id::ApprovalId;
use crate::change::{FileChange, UnlistedChanges, UnrecordedChange};
use crate::client::ClientRef;
use crate::context::Section;
use crate::event::{
    ApprovalDecision, DecidedBy, NewSession, RememberScope, Setup, SubagentUpdate, TurnOptions,
};
use crate::id::{BlobId, CallId, MessageId, QuestionId, SessionId, StepId, TurnId};
use crate::message::{MediaKind, Part, Role};
use crate::model::{self, Channel, ModelRef, Usage};
use crate::question::Question;
use crate::subagent::Task;
use crate::tool::{Assessment, Outcome};
use crate::toolset::Toolset;

/// A request to a session, or a report of something that happened outside of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Create the session.
    Create(NewSession),
    /// Set a label or, without a value, remove it.
    SetLabel { key: String, value: Option<String> },
    /// Use another model from the next turn on.
    SwitchModel(ModelRef),
    /// Replace the client's system prompt from the next step on; `None` removes it.
    SetSystemPrompt { system_prompt: Option<String> },
    /// Work in another folder. Refused while a turn is open.
    SetWorkspace { workspace: PathBuf },
    /// Offer models these tools from the next step on.
    SetTools(Toolset),
    /// Add a file whose content is already stored.
    Attach(NewAttachment),
    /// Add a message and, depending on [`TurnStart`], start its turn. The message, its
    /// files and its setup are accepted together or not at all.
    AddMessage(Box<NewMessage>),
    /// Start a turn that is pending, failed or cancelled.
    StartTurn { turn: TurnId },
    /// Answer an approval request.
    Approve(Approve),
    /// Claim calls for a client, which alone may run them from then on; all of them or
    /// none. Calls that a client of this name holds on a lost connection can be claimed
    /// only with `came_back`.
    ClaimCalls { calls: Vec<CallId>, by: ClientRef, came_back: bool },
    /// The result of a call that a client ran. Refused unless the call waits for this
    /// client.
    ReturnResult { call: CallId, by: ClientRef, outcome: Outcome },
    /// A connection was lost: the grace time of the calls that its client claimed begins.
    Disconnect { client: ClientRef },
    /// Cancel the open turn.
    Cancel { reason: Option<String> },
    /// Cancel this turn, even if it has not started.
    CancelTurn { turn: TurnId, reason: Option<String> },
    /// Add messages of another conversation, oldest first, after the existing ones or
    /// `instead` of them. No turn is started for them.
    ImportMessages { messages: Vec<ImportedMessage>, instead: bool },
    /// Replace this turn and those after it by what follows. Refused while a turn is open.
    Supersede { from: TurnId },
    /// Undo the file changes of a turn.
    Revert { turn: TurnId },
    /// Redo the reverted file changes of a turn.
    Reapply { turn: TurnId },
    /// Summarize the history now.
    Compact,
    /// Use this summary of the history instead of a model's.
    CompactWith { summary: String },
    /// Close the session.
    Close { reason: Option<String> },

    /// The model wrote text. `pieces` are the lengths in which it was streamed; empty for
    /// one piece.
    ModelOutput { step: StepId, offset: u64, channel: Channel, text: String, pieces: Vec<u32> },
    /// The provider will be called again after a delay.
    ModelRetrying { step: StepId, attempt: u32, wait_ms: u64, reason: String },
    /// The model's response is complete.
    ModelCompleted { step: StepId, answer: model::ModelResponse },
    /// The model call failed.
    ModelFailed { step: StepId, failure: model::Failure },
    /// The workspace was described for a turn.
    ContextGathered { turn: TurnId, sections: Vec<Section> },
    /// A call was assessed.
    Assessed { call: CallId, assessment: Box<Assessment> },
    /// A model reviewed a change; `answer` is `None` if the review failed.
    Reviewed { call: CallId, answer: Option<ApprovalDecision>, comment: String, usage: Usage },
    /// A call starts a subagent with this session id, if policy allows another one.
    SpawnSubagent { call: CallId, session: SessionId, task: Task },
    /// A subagent reports to the session whose call started it.
    Subagent { call: CallId, session: SessionId, news: SubagentUpdate },
    /// A running call asks the user. Nothing happens if nobody can be asked.
    AskUser { call: CallId, question: Box<Question> },
    /// A call needs no answer to its question any more.
    WithdrawQuestion { question: QuestionId },
    /// A call finished.
    CallFinished { call: CallId, outcome: Outcome },
    /// A revert finished or failed.
    RevertFinished { turn: TurnId, result: Result<(), String> },
    /// The summary was written.
    SummaryWritten { upto: MessageId, summary: String, usage: Usage },
    /// The summary could not be written.
    SummaryFailed { reason: String },
    /// The facts of a summary were written to a memory file, or could not be.
    MemorySaved { upto: MessageId, result: Result<String, String> },
    /// The daemon restarted, and all work of this session was lost.
    Recover { interrupted: Vec<InterruptedCall> },
    /// A deadline named by `next` has passed, or the session should check for work.
    Wake,
}

/// A file that a client adds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewAttachment {
    /// The client's name for the file.
    pub name: String,
    /// The MIME type.
    pub mime: String,
    /// The content.
    pub blob: BlobId,
    /// The length in bytes.
    pub size: u64,
}

/// A client's message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewMessage {
    /// The author's role.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
    /// When the turn starts.
    pub run: TurnStart,
    /// Options of the turn.
    pub options: TurnOptions,
    /// Attachments of the message, shown to the model after `parts`. Their content is
    /// already stored.
    pub files: Vec<(MediaKind, NewAttachment)>,
    /// Changes to the session's setup that apply from this turn on.
    pub setup: Setup,
    /// The first turn that this message replaces; all later turns are replaced, too. Open ones are
    /// cancelled.
    pub supersedes: Option<TurnId>,
}

impl NewMessage {
    /// A message without files and without changes to the setup.
    pub fn new(role: Role, parts: Vec<Part>, run: TurnStart, options: TurnOptions) -> Self {
        let (files, setup, supersedes) = Default::default();
        Self { role, parts, run, options, files, setup, supersedes }
    }
}

/// A message of another conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportedMessage {
    /// The author's role.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
    /// The text that models read, if it differs from the text of `parts`.
    pub wording: Option<String>,
    /// For a tool result: the call that it belongs to.
    pub call: Option<CallId>,
}

impl ImportedMessage {
    /// A message of text alone.
    pub fn text(role: Role, text: String) -> Self {
        let parts = if text.is_empty() { Vec::new() } else { vec![Part::Text(text)] };
        Self { role, parts, wording: None, call: None }
    }
}

/// When the turn of a message starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TurnStart {
    /// Immediately; refused if the session is busy.
    Now,
    /// After the turns before it.
    Queued,
    /// The turn waits for [`Command::StartTurn`].
    Later,
}

/// The answer to an approval request or to a question of a running call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Approve {
    /// The request that is answered.
    pub question: ApprovalId,
    /// The turn, if the client names it; a wrong one is refused.
    pub turn: Option<TurnId>,
    /// Allow or deny; for a question, answer or decline.
    pub answer: ApprovalDecision,
    /// The reason, for the model and the log.
    pub reason: Option<String>,
    /// Who or what decided.
    pub by: DecidedBy,
    /// The calls that the answer applies to.
    pub remember: RememberScope,
    /// For a question of a running call: the values that are asked for.
    pub content: Option<Value>,
}

/// The file changes of a call that was interrupted by the end of the daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InterruptedCall {
    /// The call.
    pub call: CallId,
    /// Files that differ from before the call.
    pub changes: Vec<FileChange>,
    /// Changes beyond the listed ones.
    pub more_changes: Option<UnlistedChanges>,
    /// Changes that may have happened and were not recorded.
    pub unrecorded: Vec<UnrecordedChange>,
}
