//! The outside world, as the core sees it. Adapters implement these; nobody else is told how.

mod editors;
mod forward;
mod front_ends;
mod nodes;
mod prompts;
mod receipt;
mod runs;
mod senses;
mod session_search;
mod tool_source;
mod voice;

use std::fmt;
use std::future::{Future, pending, ready};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use crate::change::{FileChange, FileKind, UnrecordedChange};
use crate::command::Command;
use crate::context::Section;
use crate::event::{NewSession, Record, Seq};
use crate::follow::{Cursor, Delta, Item};
use crate::id::{BlobId, CallId, SessionId, TurnId};
use crate::memory::{self, LineRange, MemoryEntry, MemoryQuery, Passage, SavedEntry, SearchResult};
use crate::message;
use crate::model::{Chunk, Failure, ModelInfo, ModelRef, Profile, Prompt, TokenCount};
use crate::session::{Refusal, State};
use crate::session_summary::{Fork, SessionSummary};
use crate::stamp::Stamp;
use crate::time::Time;
use crate::tool::{Assessment, Outcome, ToolSpec};

pub use editors::Editors;
pub use forward::{Forward, ForwardError};
pub use front_ends::{
    Artifact, Artifacts, ERASED_SPACE, Install, Installs, Preferences, UploadWriter, Uploads,
};
pub use nodes::{Inbox, InboxEntry, NodeAddress, NodeStatus, Nodes, Wakes};
pub use prompts::PromptHistory;
pub use receipt::{AddedMessage, Receipt};
pub use runs::{RunEntry, RunError, RunFilter, RunJournal, RunPoll, RunReceipt, Runs, WorkerRuns};
pub use senses::{
    Embedder, EmbeddingSpace, Embeddings, Ocr, RecognizedText, SenseError, TextBox, Vision,
    VisionResult, VisualTarget,
};
pub use session_search::{SearchError, SessionHit, SessionHits, SessionQuery, SessionSearch};
pub use tool_source::{SessionToolServers, ToolServer, ToolSource, ToolTransport};
pub use voice::{
    Audio, RECOGNITION_SAMPLE_RATE, Recognizer, SpeechSynthesizer, Transcriber, Transcript,
    TranscriptionStream,
};

/// A future behind a port.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Inbound: everything a front end can do with sessions.
pub trait Sessions: Send + Sync {
    /// Begins a session.
    fn create(&self, origin: NewSession) -> BoxFuture<'_, Result<Receipt, Error>>;
    /// Submits a command; answered once what it led to is durable.
    fn submit(
        &self,
        session: &SessionId,
        command: Command,
    ) -> BoxFuture<'_, Result<Receipt, Error>>;
    /// The session as it is now, as far as it is durable.
    fn view(&self, session: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>>;
    /// Follows a session from a position: what was, then what is.
    fn follow(
        &self,
        session: &SessionId,
        from: Cursor,
    ) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>>;
    /// A session at a glance, without waking it.
    fn summary(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>>;
    /// The newest sessions.
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>>;
}

/// Inbound: taking sessions away.
pub trait SessionDeletion: Send + Sync {
    /// Ends what a session is doing and takes it away for good; durable when it resolves.
    fn remove(&self, session: &SessionId) -> BoxFuture<'_, Result<(), Error>>;
}

/// Inbound: how sessions belong together.
pub trait SessionForks: Send + Sync {
    /// Begins a session with the history of another one, up to and including an event or, if none
    /// is named, all of it.
    fn fork(&self, session: &SessionId, at: Option<Seq>) -> BoxFuture<'_, Result<Receipt, Error>>;
    /// The sessions in which something happened last, in all workspaces or in one.
    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>>;
    /// The sessions that branched off a session's own events.
    fn forks(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>>;
}

/// Inbound: what would become of commands.
pub trait DryRuns: Send + Sync {
    /// A session, or a new one, as it would be after these commands, up to where a model is asked.
    /// Nothing of it happens, and nothing is kept.
    fn dry_run(
        &self,
        session: Option<&SessionId>,
        commands: Vec<Command>,
    ) -> BoxFuture<'_, Result<State, Error>>;
    /// A session as it would be if its history were summarized now. A model really writes the
    /// summary, or says why it cannot; nothing else happens, and nothing is kept.
    fn preview_summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Result<State, String>, Error>>;
}

/// Inbound: what turns did to files.
pub trait TurnChanges: Send + Sync {
    /// What came of a turn's changes, all together. To undo them is a command.
    fn turn_changes(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Changeset, Error>>;
    /// Why a turn's changes could not be undone (or, if they are undone, made again) as the files are
    /// now; nothing if they could. Changes nothing.
    fn revert_conflicts(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Option<String>, Error>>;
    /// Changes with what was kept of the files' content; what is long stays where it is.
    fn with_contents(
        &self,
        changes: Vec<FileChange>,
    ) -> BoxFuture<'_, Result<Vec<ChangedFile>, Error>>;
}

/// What came of a turn's changes.
#[derive(Clone, Debug)]
pub struct Changeset {
    /// File by file, sorted by path.
    pub files: Vec<FileChange>,
    /// How many more files there are, which are neither listed nor in the diff.
    pub more: u64,
    /// What may have happened beside that, and is not recorded.
    pub unrecorded: Vec<UnrecordedChange>,
    /// All files as one unified diff.
    pub diff: String,
    /// Whether they were undone.
    pub reverted: bool,
}

/// One follower.
pub trait Follower: Send + Sync {
    /// What comes next, as much of it as is there; nothing once the daemon shuts down. May be
    /// empty, where what is there was seen before.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>>;
    /// The last event that was durable when following began.
    fn head(&self) -> Seq;
    /// Where the follower stands.
    fn position(&self) -> Cursor;
}

/// Why a session could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such session.
    #[error("session not found: {0}")]
    NotFound(SessionId),
    /// The session says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The position is after the end.
    #[error("position {0} is after the end of the session, which is {1}")]
    Ahead(Seq, Seq),
    /// Sessions are read-only here.
    #[error("sessions can only be read here")]
    ReadOnly,
    /// The daemon takes nothing new.
    #[error("the daemon is shutting down")]
    Closing,
    /// Storage said no; nothing was kept.
    #[error("storage: {0}")]
    Storage(#[from] StorageError),
}

/// Trouble with storage.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// Another writer appended first.
    #[error("the session moved on to {0}")]
    Conflict(Seq),
    /// Another owner holds the session's lease now.
    #[error("the session has another owner")]
    Fenced,
    /// Another node owns the session or, if that one is dead, has its workspace.
    #[error("the session is owned by node {}", .0.name)]
    Held(NodeAddress),
    /// There is no such item.
    #[error("not found: {0}")]
    Missing(String),
    /// What is there cannot be read.
    #[error("damaged: {0}")]
    Damaged(String),
    /// Storage does not answer; whether the write was kept is not known.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// The right to write to a session. An older epoch is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// The fencing token.
    pub epoch: u64,
}

/// Leases: the right to write to a session.
pub trait Leases: Send + Sync {
    /// Takes a session over; `Held` if another live node owns it, or if only another node has its
    /// workspace.
    fn acquire(&self, session: &SessionId) -> BoxFuture<'_, Result<Lease, StorageError>>;
    /// Gives a session back, so that any node may own it. A lease that is void already is ignored.
    fn release(&self, _lease: &Lease) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(ready(Ok(())))
    }
    /// Resolves once this node's heartbeat has failed for longer than a lease lasts, so that every lease
    /// given before is void. A later call waits for the next time.
    fn lost(&self) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }
}

/// Events that are kept together or not at all.
#[derive(Clone, Debug)]
pub struct Batch {
    /// When they were decided.
    pub at: Time,
    /// The events, numbered from the expected head on; shared with whoever is told of them.
    pub records: Vec<Arc<Record>>,
    /// The session after them.
    pub summary: SessionSummary,
}

/// How much to read at once.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// At most this many events.
    pub events: usize,
    /// Stop after this many bytes (one event is always given).
    pub bytes: usize,
}

/// The numbered events of all sessions.
pub trait Journal: Send + Sync {
    /// Appends after `expected`, all or nothing, and is durable when it resolves.
    ///
    /// The order of the *calls* is the order of the appends: an owner may have several under way.
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>>;
    /// Reads what comes after a number.
    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Record>, StorageError>>;
    /// The last number; nothing if there is no such session.
    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>>;
    /// Takes a session away for good, from the list too; durable when it resolves. In order with the
    /// appends, as they are with each other.
    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>>;
    /// Begins a session with the history of another one up to and including an event, in the same
    /// time however long that is, and appends to it; all or nothing, and durable when it resolves.
    /// Nothing that becomes of the other session later, not even its end, changes this one.
    fn fork(
        &self,
        lease: &Lease,
        from: &Fork,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>>;
    /// A state of the session from which reading can begin, its own or that of an ancestor; the
    /// latest that there is. A journal that keeps none is read from its beginning.
    fn snapshot(
        &self,
        _session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Snapshot>, StorageError>> {
        Box::pin(ready(Ok(None)))
    }
    /// Keeps a state of the session instead of the last one; ignored if the journal does not reach
    /// that far. In order with the appends.
    fn keep_snapshot(
        &self,
        _lease: &Lease,
        _snapshot: Snapshot,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        Box::pin(ready(Ok(())))
    }
    /// Notice of what other nodes append; `None` if there are no other nodes.
    fn wakes(&self) -> Option<Box<dyn Wakes>> {
        None
    }
}

/// The state of a session after one of its events, see [`crate::snapshot`]. Nothing is lost with it:
/// the journal has everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event in it.
    pub seq: Seq,
    /// How it is written.
    pub format: String,
    /// The state.
    pub body: Vec<u8>,
}

/// Whether storage can be written to.
pub trait StorageHealth: Send + Sync {
    /// What is known of it or, where that is long ago, what comes of trying. Cheap to ask often.
    fn check(&self) -> BoxFuture<'_, Result<(), StorageError>>;
}

/// All sessions, a small summary of each, and the names that front ends have for them.
///
/// A summary that cannot be read is left out of lists, so that it hides no other.
pub trait SessionIndex: Send + Sync {
    /// One session.
    fn summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<SessionSummary>, StorageError>>;
    /// The newest by creation.
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>>;
    /// The sessions in which something happened last, in all workspaces or in one. Text alone does
    /// not move a session up.
    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>>;
    /// The sessions that share some of this session's own events, oldest first.
    fn forks(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>>;
    /// The sessions that must be recovered when the daemon starts.
    fn open(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>>;
    /// Replaces a session's summary and leaves its journal alone; refused as a conflict if the
    /// summary is of another head. Durable when it resolves, and in order with appends.
    fn update(
        &self,
        lease: &Lease,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StorageError>>;
    /// The session that goes by an outside name.
    fn alias(&self, alias: &Alias) -> BoxFuture<'_, Result<Option<SessionId>, StorageError>>;
    /// Has a session go by an outside name, unless it has come to mean another one than
    /// `instead_of`; gives the session that goes by it then. Durable when it resolves.
    fn set_alias(
        &self,
        alias: &Alias,
        session: &SessionId,
        instead_of: Option<&SessionId>,
    ) -> BoxFuture<'_, Result<SessionId, StorageError>>;
}

/// A name that a front end has for a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alias {
    /// The owner of the names.
    pub space: String,
    /// The name.
    pub name: String,
}

/// A listener that is told of a session's new events after they are durable.
pub trait SessionObserver: Send + Sync {
    /// There may be events up to `head`. Must return at once.
    fn published(&self, session: &SessionId, head: Seq);
    /// The session was taken away. Must return at once.
    fn erased(&self, session: &SessionId);
}

/// Text in flight that must survive the death of this process, though not of the machine.
///
/// Calls are cheap and do not wait for a disk; a follower may see text once `keep` returned.
pub trait Drafts: Send + Sync {
    /// Adds to the session's draft.
    fn push(&self, session: &SessionId, piece: &Delta) -> Result<(), StorageError>;
    /// What is there, oldest first; a torn end is left out.
    fn load(&self, session: &SessionId) -> Result<Vec<Delta>, StorageError>;
    /// Forgets it.
    fn clear(&self, session: &SessionId);
    /// Lets go of what is held open for the session, which leaves memory; the draft stays.
    fn release(&self, _session: &SessionId) {}
}

/// Content by its hash.
pub trait Blobs: Send + Sync {
    /// Keeps it; durable when it resolves.
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>>;
    /// Keeps several at once, which costs less than one after the other; their ids in that order.
    fn put_all(&self, contents: Vec<BlobBody>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>>;
    /// Reads it.
    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>>;
    /// Reads it if it has at most so many bytes, or else says which file it is in, checked, where it
    /// is in one.
    fn body(&self, blob: &BlobId, most: u64) -> BoxFuture<'_, Result<BlobBody, StorageError>>;
}

/// What is in a file. Two that are alike hold the same; two that are not may do so, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BlobBody {
    /// All of it.
    Bytes(Vec<u8>),
    /// The same as in a part of a file, which may be too long to be held in memory.
    File(FileRange),
    /// Content with this id that is not at hand: either it is not kept, or it is an object of the
    /// repository around the workspace (`git-` and its name).
    Hash(BlobId),
}

/// A part of a file that is never written again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileRange {
    /// The file.
    pub file: PathBuf,
    /// Where the part begins.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
}

/// Every model that is configured.
pub trait Models: ModelProfiles {
    /// Asks a model. Dropping the stream ends the call.
    fn stream(&self, prompt: Prompt) -> Box<dyn ModelStream>;
    /// What can be chosen.
    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>>;
}

/// What models can do. Whoever knows may learn more while the daemon runs.
pub trait ModelProfiles: fmt::Debug + Send + Sync {
    /// What a model can do, as far as is known; nothing if there is no such provider.
    fn profile(&self, model: &ModelRef) -> Option<Profile>;

    /// How many tokens a text is to a model: exactly, where its tokenizer is known.
    fn count(&self, _model: &ModelRef, text: &str) -> TokenCount {
        TokenCount::guess(text)
    }
}

/// An answer as it is written.
pub trait ModelStream: Send {
    /// What came since the last time; [`Chunk::Finished`] is the last.
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>>;
}

/// One tool.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> Arc<ToolSpec>;
    /// Looks at a call before a person is asked about it; changes nothing.
    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment>;
    /// Runs it. When cancelled it ends everything it started before it returns.
    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput>;
}

/// A call to run.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The turn.
    pub turn: TurnId,
    /// Where it works.
    pub workspace: PathBuf,
    /// The arguments.
    pub input: Value,
    /// The pictures of the session, the newest first, where the tool reads them.
    pub pictures: Vec<message::CallArtifact>,
}

/// What a running tool is given to work with.
#[derive(Clone)]
pub struct ToolContext {
    /// Where it says how far it is.
    pub progress: Arc<dyn ToolProgress>,
    /// How it learns that it should stop.
    pub cancel: Arc<dyn CancelSignal>,
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Desk")
    }
}

/// Where a running tool says how far it is.
pub trait ToolProgress: Send + Sync {
    /// Passes some output on.
    fn report(&self, text: &str);
}

/// How a running tool learns that it should stop.
pub trait CancelSignal: Send + Sync {
    /// Resolves when it should.
    fn cancelled(&self) -> BoxFuture<'_, ()>;
}

/// What a tool gives back.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    /// What came of it; its artifacts are still to be added.
    pub outcome: Outcome,
    /// Files to keep beside it.
    pub files: Vec<OutputFile>,
    /// What it made of the workspace's files.
    pub changes: Vec<ChangedFile>,
}

impl ToolOutput {
    /// What comes of a call that leaves files beside its words.
    pub fn with_files(outcome: Outcome, files: Vec<OutputFile>) -> Self {
        Self { outcome, files, changes: Vec::new() }
    }
}

impl From<Outcome> for ToolOutput {
    fn from(outcome: Outcome) -> Self {
        Self::with_files(outcome, Vec::new())
    }
}

/// A file that a tool leaves behind.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// A plain file name.
    pub name: String,
    /// The MIME type.
    pub mime: String,
    /// The content.
    pub content: Vec<u8>,
}

/// What became of one file of a workspace, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Where it is, from the workspace on, with `/` between folders.
    pub path: String,
    /// What it was; nothing if it was not there.
    pub before: Option<FileContent>,
    /// What it is; nothing if it is gone.
    pub after: Option<FileContent>,
}

/// A file at one moment, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// What is in it; nothing if that is not kept, or if there is nothing in its like.
    pub body: Option<BlobBody>,
    /// How many there are.
    pub size: u64,
    /// The permissions, where they are known.
    pub mode: Option<u32>,
    /// What it is; the body of a link is the path that it leads to.
    pub shape: FileKind,
}

/// What a call that was cut off made of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptedChanges {
    /// What is other than before it began.
    pub changes: Vec<ChangedFile>,
    /// What may have happened beside that, and is not recorded.
    pub unrecorded: Vec<UnrecordedChange>,
}

/// What is in a folder, for front ends that show it.
pub trait DirectoryListing: Send + Sync {
    /// The files below a folder, by their paths from there on, in order and at most so many; why not,
    /// if it is none.
    fn files<'a>(
        &'a self,
        folder: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<String>, String>>;
}

/// Whether an undo is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevertMode {
    /// Files are changed.
    Apply,
    /// Nothing is changed; only the reasons against it are found.
    DryRun,
}

/// The folders that sessions work in, beside what tools do there.
pub trait Workspaces: Send + Sync {
    /// What a model should know of a workspace from the start, in at most so many tokens. What
    /// cannot be read is left out.
    fn gather_context<'a>(
        &'a self,
        workspace: &'a Path,
        tokens: u64,
    ) -> BoxFuture<'a, Vec<Section>>;
    /// Changes in a workspace as one unified diff.
    fn diff<'a>(&'a self, workspace: &'a Path, changes: Vec<ChangedFile>) -> BoxFuture<'a, String>;
    /// Turns every file from `after` back into `before`, or none and says why not: one that is
    /// neither any more was changed by somebody else. Doing it twice is doing it once.
    fn revert_changes<'a>(
        &'a self,
        workspace: &'a Path,
        changes: Vec<ChangedFile>,
        run: RevertMode,
    ) -> BoxFuture<'a, Result<(), String>>;
    /// What became of the files that a call named before the end of the daemon cut it off; nothing
    /// if it named none, so that nobody knows.
    fn interrupted_changes<'a>(
        &'a self,
        workspace: &'a Path,
        turn: &'a TurnId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Option<InterruptedChanges>>;
    /// A turn is over, and that is durable: none of its calls can be cut off any more.
    fn turn_ended(&self, turn: &TurnId);
}

/// What is remembered of a workspace beyond any session. `root` is the workspace.
pub trait Memory: Send + Sync {
    /// Adds an entry at the end of its file; durable when it resolves, whole or not at all.
    fn write<'a>(
        &'a self,
        root: &'a Path,
        entry: MemoryEntry,
    ) -> BoxFuture<'a, Result<SavedEntry, memory::MemoryError>>;
    /// The passages that fit best, the best first. What people changed in the files counts.
    fn search<'a>(
        &'a self,
        root: &'a Path,
        query: MemoryQuery,
    ) -> BoxFuture<'a, Result<SearchResult, memory::MemoryError>>;
    /// Some lines of a file of memory, by its path from the workspace on.
    fn get<'a>(
        &'a self,
        root: &'a Path,
        path: &'a str,
        lines: LineRange,
    ) -> BoxFuture<'a, Result<Passage, memory::MemoryError>>;
    /// What a model should know from the start, in at most so many tokens. What cannot be read is
    /// left out.
    fn bootstrap<'a>(&'a self, root: &'a Path, tokens: u64) -> BoxFuture<'a, Vec<Section>>;
}

/// The time and chance of the outside world.
pub trait Clock: Send + Sync {
    /// A stamp for one decision.
    fn stamp(&self) -> Stamp;
    /// The time alone.
    fn now(&self) -> Time;
}
