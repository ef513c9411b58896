//! Requests of clients, decoded.

use quintet_kernel::message::MediaKind;
use quintet_kernel::{SessionId, Time};
use serde_json::Value;

use super::event_id::EventRef;

/// A request of a client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    /// Create a session.
    Create(CreateSession),
    /// List the newest sessions.
    List { workspace: Option<String>, limit: usize },
    /// Show a session.
    Get(SessionId),
    /// Show a session, and bind a legacy connection to it.
    Resume(SessionId),
    /// Show a session and send its events from now on.
    Subscribe(SessionId),
    /// Show the newest event of a session.
    Head(SessionId),
    /// Fork a session.
    Fork { session: SessionId, at: Option<EventRef>, name: Option<String>, model: Option<String> },
    /// Delete a session.
    Delete(SessionId),
    /// Show the forks of a session, and what it was forked from.
    Branches(SessionId),
    /// Send a message to the agent.
    Message(Message),
    /// Cancel the open turn.
    Abort(SessionId),
    /// Answer an approval or a question.
    Respond { session: SessionId, call: Option<String>, response: Response },
    /// Show what the agent is doing.
    AgentStatus(SessionId),
    /// List models.
    Models,
    /// Use another model.
    SwitchModel { session: SessionId, model: String },
    /// Show how full the context is.
    Context(SessionId),
    /// Show how full the context is as the original server does, perhaps with everything in it.
    Snapshot { session: SessionId, whole: bool },
    /// Show whether a turn with so many more tokens fits.
    ContextRoom { session: SessionId, expected: u64 },
    /// Summarize old history, by the model or with this text.
    Compact { session: SessionId, summary: Option<String> },
    /// Show what a compaction would do.
    PreviewCompaction(SessionId),
    /// Hide all messages so far from models.
    Clear(SessionId),
    /// Read events, oldest first.
    Events(Read),
    /// Read the newest events, newest first.
    EventsBackwards(Read),
    /// Read the events that were missed, and send those that follow.
    Sync(Read),
    /// Read an event and those that led to it, oldest first.
    Ancestors(Read),
    /// Show a session's events as a tree.
    Tree { session: SessionId, messages: bool },
    /// Send no more events of a session.
    Unsubscribe(SessionId),
    /// List a folder, the home folder if none is named.
    ListFolder { path: Option<String>, hidden: bool },
    /// Show the home folder and usual places for work.
    Home,
    /// Create a folder, perhaps with those above it.
    MakeFolder { path: String, parents: bool },
    /// A method of the original server whose result is always the same here.
    StaticReply(Value),
    /// Answer that the daemon is there.
    Ping,
    /// Show the version and the like.
    Info,
}

/// The parameters of a new session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CreateSession {
    pub(super) workspace: String,
    pub(super) model: Option<String>,
    pub(super) system_prompt: Option<String>,
    pub(super) title: Option<String>,
}

/// A message to the agent.
#[derive(Clone, PartialEq)]
pub(super) struct Message {
    pub(super) session: SessionId,
    pub(super) text: String,
    pub(super) files: Vec<File>,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) queue: bool,
    /// The idempotency key: a message that is sent again with the same key runs once.
    pub(super) key: Option<String>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { session, text, files, model, effort, queue, key } = self;
        write!(f, "Message {{ {session} {text:?} files: {files:?}")?;
        write!(f, " model: {model:?} effort: {effort:?} queue: {queue}")?;
        match key {
            Some(key) => write!(f, " key: {key:?} }}"),
            None => f.write_str(" }"),
        }
    }
}

/// A file that comes with a message.
#[derive(Clone, PartialEq)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) mime: String,
    pub(super) kind: MediaKind,
    pub(super) content: Vec<u8>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.content.len();
        write!(f, "{} {} {} {bytes} bytes", self.name, self.mime, self.kind.name())
    }
}

/// An answer to the agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Response {
    /// A decision on a call that waits for approval.
    Decision { allow: bool, reason: Option<String> },
    /// The answer to a question, or the result of a call.
    Text { text: String, failed: bool },
}

/// Which events to read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub(super) session: SessionId,
    /// Only events after this one or, backwards, before it.
    pub(super) from: Option<EventRef>,
    /// At most so many.
    pub(super) limit: Option<usize>,
    /// Only these types; all if there are none.
    pub(super) types: Vec<String>,
    /// Not before this moment.
    pub(super) since: Option<Time>,
    /// In the original server's types.
    pub(super) original: bool,
}

impl Read {
    /// All events of a session.
    pub(super) fn all(session: SessionId) -> Self {
        Self { session, from: None, limit: None, types: Vec::new(), since: None, original: false }
    }

    /// True if an event is among the types asked for.
    pub(super) fn wants(&self, event: &Value) -> bool {
        let is = |kind: &String| event["type"].as_str() == Some(kind);
        self.types.is_empty() || self.types.iter().any(is)
    }
}
