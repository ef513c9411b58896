//! What somebody wants. There is one way in, for clients and for the runtime's own news.
//!
//! Commands are serialized only on their way between nodes of one version; the journal has none.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::change::{FileChange, Gap, MoreChanges};
use crate::client::ClientRef;
use crate::context::Section;
use crate::event::{Answer, Answerer, Origin, Remember, Setup, SubagentNews, TurnOptions};
use crate::id::{BlobId, CallId, MessageId, SessionId, StepId, TurnId};
use crate::message::{MediaKind, Part, Role};
use crate::model::{self, Channel, ModelRef, Usage};
use crate::question::Question;
use crate::subagent::Task;
use crate::tool::{Assessment, Outcome};
use crate::toolset::Toolset;

/// What somebody wants of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Begin.
    Create(Origin),
    /// Set or remove a note.
    Label { key: String, value: Option<String> },
    /// Use another model from the next turn on.
    SwitchModel(ModelRef),
    /// Follow these standing instructions of the client from the next step on, instead of those
    /// before; none if not given.
    Instruct { system_prompt: Option<String> },
    /// Work in another folder; only between turns.
    Move { workspace: PathBuf },
    /// Offer models these tools from the next step on.
    Offer(Toolset),
    /// Keep a file; its content is stored already.
    Attach(Upload),
    /// Say something and, perhaps, have it answered; all that comes with it is taken with it or not at
    /// all.
    Say(Box<Say>),
    /// Set to work on a turn that waits, failed or was cancelled.
    Start { turn: TurnId },
    /// Answer a question.
    Approve(Approve),
    /// Give these calls to a client, which alone may run them from now on; all of them or none. What a
    /// client of this name holds on a connection that is lost counts only if this is that client, come
    /// back.
    Claim { calls: Vec<CallId>, by: ClientRef, came_back: bool },
    /// A client ran one of its tools, or would not. Refused unless the call waits for this client.
    Return { call: CallId, by: ClientRef, outcome: Outcome },
    /// A connection is gone: the grace time of what its client holds begins.
    Disconnect { client: ClientRef },
    /// Call the open turn off.
    Cancel { reason: Option<String> },
    /// Call this turn off, also if it has not begun.
    Withdraw { turn: TurnId, reason: Option<String> },
    /// Take over what was said elsewhere, oldest first, after what was said here or instead of it.
    /// Nothing of it is answered.
    Recall { messages: Vec<Recalled>, instead: bool },
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
    Abridge { summary: String },
    /// The session is done with.
    Close { reason: Option<String> },

    /// The model wrote this much, in pieces of these lengths; nothing where it is one piece.
    Output { step: StepId, offset: u64, channel: Channel, text: String, pieces: Vec<u32> },
    /// The provider will be asked again.
    Retrying { step: StepId, attempt: u32, wait_ms: u64, reason: String },
    /// The model is done.
    Answered { step: StepId, answer: model::Answer },
    /// The model call came to nothing.
    ModelFailed { step: StepId, failure: model::Failure },
    /// The workspace was looked at for a turn.
    Surveyed { turn: TurnId, sections: Vec<Section> },
    /// A call was looked at.
    Assessed { call: CallId, assessment: Box<Assessment> },
    /// The model read a change again; nothing is answered if it could not.
    Reviewed { call: CallId, answer: Option<Answer>, comment: String, usage: Usage },
    /// A session of this id is to work on a task for a call, if policy allows another one.
    Spawn { call: CallId, session: SessionId, task: Task },
    /// There is news of a session that works for a call.
    Subagent { call: CallId, session: SessionId, news: SubagentNews },
    /// A call is over.
    Finished { call: CallId, outcome: Outcome },
    /// A turn's changes were undone, or could not be.
    PutBack { turn: TurnId, result: Result<(), String> },
    /// The summary is written.
    Summarized { upto: MessageId, summary: String, usage: Usage },
    /// The summary could not be written.
    NotSummarized { reason: String },
    /// A summary's facts are in a file of memory, or could not be put there.
    Saved { upto: MessageId, result: Result<String, String> },
    /// The daemon starts, and everything that ran for this session is gone.
    Recover { cut_off: Vec<CutOff> },
    /// A point in time that `next` named has come, or the session should look around for work.
    Wake,
}

/// A file that a client hands over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Upload {
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
pub struct Say {
    /// The speaker.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
    /// Whether to answer it at once.
    pub run: Run,
    /// How.
    pub options: TurnOptions,
    /// Files that come with it, which are shown to the model after `parts`; their content is stored
    /// already.
    pub files: Vec<(MediaKind, Upload)>,
    /// What the session runs with from this turn on, where that changes.
    pub setup: Setup,
    /// The turn that it is said instead of, with all turns after that one. What of them is not over
    /// is called off.
    pub supersedes: Option<TurnId>,
}

impl Say {
    /// A message that brings neither files nor a setup.
    pub fn new(role: Role, parts: Vec<Part>, run: Run, options: TurnOptions) -> Self {
        let (files, setup, supersedes) = Default::default();
        Self { role, parts, run, options, files, setup, supersedes }
    }
}

/// A message of another session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recalled {
    /// The speaker.
    pub role: Role,
    /// What was said.
    pub parts: Vec<Part>,
    /// How models are told of it, where that is other than its text.
    pub wording: Option<String>,
    /// The call that it is the result of, if it is one.
    pub call: Option<CallId>,
}

impl Recalled {
    /// Words alone.
    pub fn text(role: Role, text: String) -> Self {
        let parts = if text.is_empty() { Vec::new() } else { vec![Part::Text(text)] };
        Self { role, parts, wording: None, call: None }
    }
}

/// Whether to answer a message at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Run {
    /// Yes; refused if the session is busy.
    Now,
    /// Yes, as soon as the turns before it are over.
    Next,
    /// No: the turn waits for [`Command::Start`].
    Later,
}

/// An answer to a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Approve {
    /// The question.
    pub question: Question,
    /// The turn, where the client names it; a wrong one is refused.
    pub turn: Option<TurnId>,
    /// The word.
    pub answer: Answer,
    /// Why.
    pub reason: Option<String>,
    /// The answerer.
    pub by: Answerer,
    /// For which calls it counts.
    pub remember: Remember,
}

/// What became of files by a call that the end of the daemon cut off.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CutOff {
    /// The call.
    pub call: CallId,
    /// What is other than before it began.
    pub changes: Vec<FileChange>,
    /// The changes beyond those.
    pub more_changes: Option<MoreChanges>,
    /// What may have happened beside that, and is not recorded.
    pub unrecorded: Vec<Gap>,
}
