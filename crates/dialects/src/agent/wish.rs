//! What clients want.

use quintet_kernel::event::Seq;
use quintet_kernel::message::MediaKind;
use quintet_kernel::{SessionId, Time};
use serde_json::Value;

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wish {
    /// Begin a session.
    Create(Begin),
    /// See the newest sessions.
    List { workspace: Option<String>, limit: usize },
    /// See one.
    Get(SessionId),
    /// See one and go on with it.
    Resume(SessionId),
    /// See one and be told of it from now on.
    Watch(SessionId),
    /// See the newest event of one.
    Head(SessionId),
    /// Branch off.
    Fork { session: SessionId, at: Option<Seq>, name: Option<String>, model: Option<String> },
    /// Have it gone.
    Delete(SessionId),
    /// See what branched off, and from what it did itself.
    Branches(SessionId),
    /// Say something to the agent.
    Message(Message),
    /// Call off what it does.
    Abort(SessionId),
    /// Answer what it asked.
    Respond { session: SessionId, call: Option<String>, response: Response },
    /// See what it does.
    Doing(SessionId),
    /// See what models there are.
    Models,
    /// Use another one.
    Switch { session: SessionId, model: String },
    /// See how full the context is.
    Context(SessionId),
    /// The same as the original shows it, perhaps with everything in it.
    Snapshot { session: SessionId, whole: bool },
    /// See whether a turn that reads so many tokens more fits.
    Room { session: SessionId, expected: u64 },
    /// Have old history summarized, by the model or in these words.
    Compact { session: SessionId, summary: Option<String> },
    /// See what would come of it.
    Preview(SessionId),
    /// Have models read nothing any more of what was said.
    Clear(SessionId),
    /// Read events, oldest first.
    Events(Read),
    /// Read the newest events, newest first.
    Backwards(Read),
    /// Read what was missed and be told of what follows.
    Sync(Read),
    /// Read an event and those that led to it, oldest first.
    Ancestors(Read),
    /// See a session's events as a tree.
    Tree { session: SessionId, messages: bool },
    /// Be told of a session no more.
    Unwatch(SessionId),
    /// See what is in a folder, the home folder if none is named.
    Folder { path: Option<String>, hidden: bool },
    /// See where sessions may work.
    Home,
    /// Make a folder, perhaps with those above it.
    MakeFolder { path: String, parents: bool },
    /// Hear what is always so here.
    Fact(Value),
    /// Hear that somebody is there.
    Ping,
    /// Hear who.
    Info,
}

/// How a session is to begin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Begin {
    pub(super) workspace: String,
    pub(super) model: Option<String>,
    pub(super) system_prompt: Option<String>,
    pub(super) title: Option<String>,
}

/// Something to be said to the agent.
#[derive(Clone, PartialEq)]
pub(super) struct Message {
    pub(super) session: SessionId,
    pub(super) text: String,
    pub(super) files: Vec<File>,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) queue: bool,
    /// The client's own name for it; sent again, it is answered once.
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

/// A file that comes with it.
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
    /// A word on a call that waits for one.
    Word { allow: bool, reason: Option<String> },
    /// What a person said to a question, or what came of a call.
    Said { text: String, failed: bool },
}

/// Which events to read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub(super) session: SessionId,
    /// Those after this one or, backwards, before it.
    pub(super) from: Option<Seq>,
    /// At most so many.
    pub(super) limit: Option<usize>,
    /// Only these types; all if there are none.
    pub(super) types: Vec<String>,
    /// Not before this moment.
    pub(super) since: Option<Time>,
    /// In the original server's words.
    pub(super) original: bool,
}

impl Read {
    /// All of a session's.
    pub(super) fn all(session: SessionId) -> Self {
        Self { session, from: None, limit: None, types: Vec::new(), since: None, original: false }
    }

    /// Whether an event is among those asked for.
    pub(super) fn wants(&self, event: &Value) -> bool {
        let is = |kind: &String| event["type"].as_str() == Some(kind);
        self.types.is_empty() || self.types.iter().any(is)
    }
}
