//! Decoded requests of clients.

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
    /// Show the size of the context.
    Context(SessionId),
    /// Show the size of the context in the format of the original server, optionally with its content.
    Snapshot { session: SessionId, whole: bool },
    /// Show whether a turn with this many more tokens fits.
    ContextSpace { session: SessionId, expected: u64 },
    /// Summarize old history, by the model or with this text.
    Compact { session: SessionId, summary: Option<String> },
    /// Show what a compaction would do.
    PreviewCompaction(SessionId),
    /// Hide all messages so far from models.
    Clear(SessionId),
    /// Read events, oldest first.
    Events(EventQuery),
    /// Read the newest events, newest first.
    EventsBackwards(EventQuery),
    /// Read the events that were missed, and send those that follow.
    Sync(EventQuery),
    /// Read an event and its ancestors, oldest first.
    Ancestors(EventQuery),
    /// Show a session's events as a tree.
    Tree { session: SessionId, messages: bool },
    /// Send no more events of a session.
    Unsubscribe(SessionId),
    /// List a folder; the home folder by default.
    ListFolder { path: Option<String>, hidden: bool },
    /// Show the home folder and the usual folders of projects.
    Home,
    /// Create a folder, optionally with its parents.
    MakeFolder { path: String, parents: bool },
    /// A method of the original server whose result is always the same here.
    StaticReply(Value),
    /// Reply that the daemon is running.
    Ping,
    /// Show the version, uptime and default model.
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

/// A file of a message.
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

/// Selects events of a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventQuery {
    pub(super) session: SessionId,
    /// Only events after this one or, backwards, before it.
    pub(super) from: Option<EventRef>,
    /// The most events to read.
    pub(super) limit: Option<usize>,
    /// Only events of these types; all if empty.
    pub(super) types: Vec<String>,
    /// Only events from this time on.
    pub(super) since: Option<Time>,
    /// True to use the type names of the original server.
    pub(super) original: bool,
}

impl EventQuery {
    /// All events of a session.
    pub(super) fn all(session: SessionId) -> Self {
        Self { session, from: None, limit: None, types: Vec::new(), since: None, original: false }
    }

    /// True if an event has a requested type.
    pub(super) fn includes(&self, event: &Value) -> bool {
        let is = |kind: &String| event["type"].as_str() == Some(kind);
        self.types.is_empty() || self.types.iter().any(is)
    }
}
