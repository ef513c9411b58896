//! What somebody wants. There is one way in, for clients and for the runtime's own news.
//!
//! Commands are serialized only on their way between nodes of one version; the journal has none.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::approval_id::ApprovalId;
use crate::change::{FileChange, UnlistedChanges, UnrecordedChange};
use crate::client::ClientRef;
use crate::context::Section;
use crate::event::{
    ApprovalDecision, DecidedBy, NewSession, RememberScope, Setup, SubagentUpdate, TurnOptions,
};
use crate::id::{BlobId, CallId, MessageId, SessionId, StepId, TurnId};
use crate::message::{MediaKind, Part, Role};
use crate::model::{self, Channel, ModelRef, Usage};
use crate::subagent::Task;
use crate::tool::{Assessment, Outcome};
use crate::toolset::Toolset;

/// What somebody wants of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Begin.
    Create(NewSession),
    /// Set or remove a note.
    SetLabel { key: String, value: Option<String> },
    /// Use another model from the next turn on.
    SwitchModel(ModelRef),
    /// Follow these standing instructions of the client from the next step on, instead of those
    /// before; none if not given.
    SetSystemPrompt { system_prompt: Option<String> },
    /// Work in another folder; only between turns.
    SetWorkspace { workspace: PathBuf },
    /// Offer models these tools from the next step on.
    SetTools(Toolset),
    /// Keep a file; its content is stored already.
    Attach(NewAttachment),
    /// Say something and, perhaps, have it answered; all that comes with it is taken with it or not at
    /// all.
    AddMessage(Box<NewMessage>),
    /// Set to work on a turn that waits, failed or was cancelled.
    StartTurn { turn: TurnId },
    /// Answer a question.
    Approve(Approve),
    /// Give these calls to a client, which alone may run them from now on; all of them or none. What a
    /// client of this name holds on a connection that is lost counts only if this is that client, come
    /// back.
    ClaimCalls { calls: Vec<CallId>, by: ClientRef, came_back: bool },
    /// A client ran one of its tools, or would not. Refused unless the call waits for this client.
    ReturnResult { call: CallId, by: ClientRef, outcome: Outcome },
    /// A connection is gone: the grace time of what its client holds begins.
    Disconnect { client: ClientRef },
    /// Call the open turn off.
    Cancel { reason: Option<String> },
    /// Call this turn off, also if it has not begun.
    CancelTurn { turn: TurnId, reason: Option<String> },
    /// Take over what was said elsewhere, oldest first, after what was said here or instead of it.
    /// Nothing of it is answered.
    ImportMessages { messages: Vec<ImportedMessage>, instead: bool },
    /// Go on from before this turn: it and those after it are replaced by what comes next. Only
    /// between turns.
    Supersede { from: TurnId },
    /// Undo what a turn did to files.
    Revert { turn: TurnId },
    /// Make the changes again that were undone.
    Reapply { turn: TurnId },
    /// Summarize the history now.
    Compact,
    /// The same, in these words instead of a model's.
    CompactWith { summary: String },
    /// The session is done with.
    Close { reason: Option<String> },

    /// The model wrote this much, in pieces of these lengths; nothing where it is one piece.
    ModelOutput { step: StepId, offset: u64, channel: Channel, text: String, pieces: Vec<u32> },
    /// The provider will be asked again.
    ModelRetrying { step: StepId, attempt: u32, wait_ms: u64, reason: String },
    /// The model is done.
    ModelCompleted { step: StepId, answer: model::ModelResponse },
    /// The model call came to nothing.
    ModelFailed { step: StepId, failure: model::Failure },
    /// The workspace was looked at for a turn.
    ContextGathered { turn: TurnId, sections: Vec<Section> },
    /// A call was looked at.
    Assessed { call: CallId, assessment: Box<Assessment> },
    /// The model read a change again; nothing is answered if it could not.
    Reviewed { call: CallId, answer: Option<ApprovalDecision>, comment: String, usage: Usage },
    /// A session of this id is to work on a task for a call, if policy allows another one.
    SpawnSubagent { call: CallId, session: SessionId, task: Task },
    /// There is news of a session that works for a call.
    Subagent { call: CallId, session: SessionId, news: SubagentUpdate },
    /// A call is over.
    CallFinished { call: CallId, outcome: Outcome },
    /// A turn's changes were undone, or could not be.
    RevertFinished { turn: TurnId, result: Result<(), String> },
    /// The summary is written.
    SummaryWritten { upto: MessageId, summary: String, usage: Usage },
    /// The summary could not be written.
    SummaryFailed { reason: String },
    /// A summary's facts are in a file of memory, or could not be put there.
    MemorySaved { upto: MessageId, result: Result<String, String> },
    /// The daemon starts, and everything that ran for this session is gone.
    Recover { interrupted: Vec<InterruptedCall> },
    /// A point in time that `next` named has come, or the session should look around for work.
    Wake,
}

/// A file that a client hands over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewAttachment {
    /// The client's name for it.
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
    /// The speaker.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
    /// Whether to answer it at once.
    pub run: TurnStart,
    /// How.
    pub options: TurnOptions,
    /// Files that come with it, which are shown to the model after `parts`; their content is stored
    /// already.
    pub files: Vec<(MediaKind, NewAttachment)>,
    /// What the session runs with from this turn on, where that changes.
    pub setup: Setup,
    /// The turn that it is said instead of, with all turns after that one. What of them is not over
    /// is called off.
    pub supersedes: Option<TurnId>,
}

impl NewMessage {
    /// A message that brings neither files nor a setup.
    pub fn new(role: Role, parts: Vec<Part>, run: TurnStart, options: TurnOptions) -> Self {
        let (files, setup, supersedes) = Default::default();
        Self { role, parts, run, options, files, setup, supersedes }
    }
}

/// A message of another session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportedMessage {
    /// The speaker.
    pub role: Role,
    /// What was said.
    pub parts: Vec<Part>,
    /// How models are told of it, where that is other than its text.
    pub wording: Option<String>,
    /// The call that it is the result of, if it is one.
    pub call: Option<CallId>,
}

impl ImportedMessage {
    /// Words alone.
    pub fn text(role: Role, text: String) -> Self {
        let parts = if text.is_empty() { Vec::new() } else { vec![Part::Text(text)] };
        Self { role, parts, wording: None, call: None }
    }
}

/// Whether to answer a message at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TurnStart {
    /// Yes; refused if the session is busy.
    Now,
    /// Yes, as soon as the turns before it are over.
    Queued,
    /// No: the turn waits for [`Command::StartTurn`].
    Later,
}

/// An answer to a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Approve {
    /// The question.
    pub question: ApprovalId,
    /// The turn, where the client names it; a wrong one is refused.
    pub turn: Option<TurnId>,
    /// The word.
    pub answer: ApprovalDecision,
    /// Why.
    pub reason: Option<String>,
    /// The answerer.
    pub by: DecidedBy,
    /// For which calls it counts.
    pub remember: RememberScope,
}

/// What became of files by a call that the end of the daemon cut off.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InterruptedCall {
    /// The call.
    pub call: CallId,
    /// What is other than before it began.
    pub changes: Vec<FileChange>,
    /// The changes beyond those.
    pub more_changes: Option<UnlistedChanges>,
    /// What may have happened beside that, and is not recorded.
    pub unrecorded: Vec<UnrecordedChange>,
}
