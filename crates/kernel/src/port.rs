//! Ports: the traits through which the core meets the outside world.
//!
//! Inbound ports ([`Sessions`], [`SessionInspection`], [`Runs`], …) are implemented by the
//! runtime and called by front ends. Outbound ports ([`Journal`], [`Blobs`], [`Models`],
//! [`Tool`], …) are implemented by adapters and called by the runtime. An adapter depends on
//! this module alone, never on another adapter.

mod diagnosis;
mod editors;
mod forward;
mod front_ends;
mod nodes;
mod overhead;
mod receipt;
mod runs;
mod senses;
mod server_prompts;
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
use crate::model::{Chunk, Failure, ModelInfo, ModelRef, Price, Profile, Prompt, TokenCount};
use crate::question::{Question, QuestionAnswer};
use crate::session::{Refusal, State};
use crate::session_summary::{Fork, SessionSummary};
use crate::stamp::Stamp;
use crate::time::Time;
use crate::tool::{Assessment, Outcome, ToolSpec};

pub use diagnosis::{Diagnosis, Finding, Severity};
pub use editors::Editors;
pub use forward::{Forward, ForwardError};
pub use front_ends::{
    Artifact, Artifacts, ERASED_SPACE, Install, Installs, Preferences, UploadWriter, Uploads,
};
pub use nodes::{Inbox, InboxEntry, NodeAddress, NodeStatus, Nodes, Wake, Wakes};
pub use overhead::{TurnOverhead, TurnOverheads};
pub use receipt::{AddedMessage, Receipt};
pub use runs::{RunEntry, RunError, RunFilter, RunJournal, RunPoll, RunReceipt, Runs, WorkerRuns};
pub use senses::{
    Embedder, EmbeddingSpace, Embeddings, Ocr, RecognizedText, SenseError, TextBox, Vision,
    VisionResult, VisualTarget,
};
pub use server_prompts::{PromptArgument, PromptContent, ServerPrompt, ServerPrompts};
pub use session_search::{SearchError, SessionHit, SessionHits, SessionQuery, SessionSearch};
pub use tool_source::{
    ServerOrigin, ServerSandbox, ServerState, SessionToolServers, ToolServer, ToolServerControl,
    ToolServerInfo, ToolSource, ToolTransport,
};
pub use voice::{
    Audio, RECOGNITION_SAMPLE_RATE, Recognizer, SpeechSynthesizer, Transcriber, Transcript,
    TranscriptionStream,
};

/// The future that port methods return, boxed so that ports can be used as trait objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Inbound: what front ends do with sessions. Read-only implementations keep the default of the methods
/// that change something, which fail with [`Error::ReadOnly`].
pub trait Sessions: Send + Sync {
    /// Creates a session and returns once its first events are durable.
    fn create(&self, origin: NewSession) -> BoxFuture<'_, Result<Receipt, Error>> {
        let _ = origin;
        read_only()
    }
    /// Submits a command and returns once the resulting events are durable. Fails with
    /// [`Error::Refused`] if the session does not accept the command.
    fn submit(
        &self,
        session: &SessionId,
        command: Command,
    ) -> BoxFuture<'_, Result<Receipt, Error>> {
        let _ = (session, command);
        read_only()
    }
    /// Creates a session that shares the history of another one up to and including event
    /// `at`, or all of it if `at` is not given.
    fn fork(&self, session: &SessionId, at: Option<Seq>) -> BoxFuture<'_, Result<Receipt, Error>> {
        let _ = (session, at);
        read_only()
    }
    /// Cancels all work of a session and deletes the session with its subagents. The
    /// deletion is durable when the future resolves.
    fn remove(&self, session: &SessionId) -> BoxFuture<'_, Result<(), Error>> {
        let _ = session;
        read_only()
    }
    /// The current state of a session, including only what is durable.
    fn view(&self, session: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>>;
    /// Follows a session from a position: first the stored events, then new ones as they
    /// happen. Fails with [`Error::Ahead`] if the position is after the last event.
    fn follow(
        &self,
        session: &SessionId,
        from: Cursor,
    ) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>>;
    /// The summary of a session. Does not load the session into memory.
    fn summary(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>>;
    /// The summaries of the newest sessions, newest first.
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>>;
    /// The summaries of the most recently used sessions, in one workspace or in all.
    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>>;
    /// The summaries of the sessions that were forked from a session's own events.
    fn forks(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>>;
}

fn read_only<T: Send + 'static>() -> BoxFuture<'static, Result<T, Error>> {
    Box::pin(ready(Err(Error::ReadOnly)))
}

/// Inbound: inspects a session: what its turns changed, what its models were sent, and what
/// commands would lead to. Changes nothing.
pub trait SessionInspection: Send + Sync {
    /// The combined file changes of a turn. [`Command::Revert`] undoes them.
    fn turn_changes(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Changeset, Error>>;
    /// The reason why a turn's changes could not be reverted (or reapplied, if they are
    /// reverted) now, or `None` if they could. Changes no file.
    fn revert_conflicts(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Option<String>, Error>>;
    /// Adds the stored file contents to changes. Long contents are given as a part of a
    /// file.
    fn with_contents(
        &self,
        changes: Vec<FileChange>,
    ) -> BoxFuture<'_, Result<Vec<ChangedFile>, Error>>;
    /// The session as it was right after an event. If that event starts a model call,
    /// [`crate::prompt::assemble`] reproduces the prompt that the model was sent. Fails if the session does
    /// not exist; `None` if the event does not.
    fn session_at<'a>(
        &'a self,
        session: &'a SessionId,
        event: Seq,
    ) -> BoxFuture<'a, Result<Option<State>, Error>>;
    /// The state that a session, or a new one, would have after these commands, up to the
    /// first model call. Nothing is executed and nothing is stored.
    fn dry_run(
        &self,
        session: Option<&SessionId>,
        commands: Vec<Command>,
    ) -> BoxFuture<'_, Result<State, Error>>;
    /// The state that a session would have if its history were compacted now. The model
    /// call is real; its failure is the inner error. Nothing is stored.
    fn preview_summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Result<State, String>, Error>>;
}

/// The combined file changes of a turn.
#[derive(Clone, Debug)]
pub struct Changeset {
    /// One change per file, sorted by path.
    pub files: Vec<FileChange>,
    /// Number of further files that are neither in `files` nor in `diff`.
    pub more: u64,
    /// Changes that may have happened and were not recorded.
    pub unrecorded: Vec<UnrecordedChange>,
    /// All listed files as one unified diff.
    pub diff: String,
    /// True if the changes were reverted.
    pub reverted: bool,
}

/// A reader of one session's events and output, in order.
pub trait Follower: Send + Sync {
    /// Waits for items and returns all that are available; `None` means that the daemon
    /// shuts down. The list may be empty if the follower has seen all of it.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>>;
    /// The last durable event at the time the follower was created.
    fn head(&self) -> Seq;
    /// The position after the last item that was returned.
    fn position(&self) -> Cursor;
}

/// Why a request to a session failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session does not exist.
    #[error("session not found: {0}")]
    NotFound(SessionId),
    /// The session does not accept the command in its current state.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The position is after the last event.
    #[error("position {0} is after the end of the session, which is {1}")]
    Ahead(Seq, Seq),
    /// The sessions were opened for reading only.
    #[error("sessions can only be read here")]
    ReadOnly,
    /// The daemon is shutting down.
    #[error("the daemon is shutting down")]
    Closing,
    /// Storage failed; nothing was stored.
    #[error("storage: {0}")]
    Storage(#[from] StorageError),
}

/// Why a storage operation failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// Another writer appended first; the head is now this event.
    #[error("the session moved on to {0}")]
    Conflict(Seq),
    /// A newer lease on the session exists.
    #[error("the session has another owner")]
    Fenced,
    /// Another node owns the session or, if that one is dead, has its workspace.
    #[error("the session is owned by node {}", .0.name)]
    Held(NodeAddress),
    /// The item does not exist.
    #[error("not found: {0}")]
    Missing(String),
    /// The stored data cannot be decoded.
    #[error("damaged: {0}")]
    Damaged(String),
    /// Storage did not respond; the write may or may not have been stored.
    #[error("unavailable: {0}")]
    Unavailable(String),
}

/// The exclusive right to write to a session. Writes with an older epoch are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// The fencing token; grows with every acquisition.
    pub epoch: u64,
}

/// Outbound: exclusive write access to sessions.
pub trait Leases: Send + Sync {
    /// Acquires the lease of a session and invalidates earlier ones. Fails with `Held` if another
    /// live node owns the session, or if only another node has its workspace.
    fn acquire(&self, session: &SessionId) -> BoxFuture<'_, Result<Lease, StorageError>>;
    /// Releases a session, so that any node may own it. A lease that is void already is ignored.
    fn release(&self, _lease: &Lease) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(ready(Ok(())))
    }
    /// Resolves once this node's heartbeat has failed for longer than a lease lasts, so that all
    /// earlier leases are void. A later call waits for the next failure.
    fn lost(&self) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }
}

/// Events that are stored together or not at all.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The events, numbered consecutively after the expected head. Shared with followers.
    pub records: Vec<Arc<Record>>,
    /// The session's summary after these events.
    pub summary: SessionSummary,
}

/// Limits of one read.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Maximum number of events.
    pub events: usize,
    /// Bytes after which the page ends; it holds at least one event.
    pub bytes: usize,
}

/// Outbound: the numbered events of all sessions.
pub trait Journal: Send + Sync {
    /// Appends events after event `expected`, all or none; durable when the future
    /// resolves. Fails with [`StorageError::Conflict`] if the head is not `expected`, and
    /// with [`StorageError::Fenced`] if the lease was replaced.
    ///
    /// Appends are ordered by the order of the calls: an owner may have several in
    /// progress.
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>>;
    /// Reads the events after event `after`.
    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Record>, StorageError>>;
    /// The number of the last event, or `None` if the session does not exist.
    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>>;
    /// Deletes a session and its summary; durable when the future resolves. Ordered with
    /// the appends.
    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>>;
    /// Creates a session that shares the events of another one up to and including
    /// `from.at`, and appends to it; all or nothing, durable when the future resolves. The
    /// cost does not depend on the length of the shared history, and deleting the parent
    /// does not affect the fork.
    fn fork(
        &self,
        lease: &Lease,
        from: &Fork,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>>;
    /// The latest snapshot of the session or of an ancestor from which reading can start.
    /// Journals without snapshots are read from the first event.
    fn snapshot(
        &self,
        _session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Snapshot>, StorageError>> {
        Box::pin(ready(Ok(None)))
    }
    /// Replaces the snapshot of a session; ignored if the journal has fewer events than the
    /// snapshot. Ordered with the appends.
    fn keep_snapshot(
        &self,
        _lease: &Lease,
        _snapshot: Snapshot,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        Box::pin(ready(Ok(())))
    }
    /// Notices of what other nodes did; `None` if there are no other nodes.
    fn wakes(&self) -> Option<Box<dyn Wakes>> {
        None
    }
}

/// The state of a session after one of its events, see [`crate::snapshot`]. A snapshot only
/// saves time: the journal holds everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event that the state includes.
    pub seq: Seq,
    /// The format of `body`.
    pub format: String,
    /// The encoded state.
    pub body: Vec<u8>,
}

/// Outbound: whether storage accepts writes.
pub trait StorageHealth: Send + Sync {
    /// The result of the last write or, if that is old, of a write made for this check.
    /// Cheap enough to call for every health request.
    fn check(&self) -> BoxFuture<'_, Result<(), StorageError>>;
}

/// Outbound: the summaries of all sessions, and the aliases that front ends use for them.
///
/// A summary that cannot be decoded is left out of lists, so that it does not hide the others.
pub trait SessionIndex: Send + Sync {
    /// The summary of one session.
    fn summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<SessionSummary>, StorageError>>;
    /// The newest sessions by creation time.
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>>;
    /// The most recently used sessions, in one workspace or in all. Appended text alone
    /// does not count as use.
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
    /// The sessions that have unfinished work and must be recovered when the daemon starts.
    fn open(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>>;
    /// Replaces a session's summary without appending to its journal. Fails with
    /// [`StorageError::Conflict`] if the summary describes another head. Durable when the
    /// future resolves; ordered with the appends.
    fn update(
        &self,
        lease: &Lease,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StorageError>>;
    /// The session of an alias.
    fn alias(&self, alias: &Alias) -> BoxFuture<'_, Result<Option<SessionId>, StorageError>>;
    /// Points an alias at a session, unless it points at another session than `instead_of`.
    /// Returns the session of the alias afterwards. Durable when the future resolves.
    fn set_alias(
        &self,
        alias: &Alias,
        session: &SessionId,
        instead_of: Option<&SessionId>,
    ) -> BoxFuture<'_, Result<SessionId, StorageError>>;
}

/// A front end's own name for a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alias {
    /// The namespace, one per front end.
    pub space: String,
    /// The name within the namespace.
    pub name: String,
}

/// Outbound: notified of durable events.
pub trait SessionObserver: Send + Sync {
    /// There may be new events up to `head`. Must return without blocking.
    fn published(&self, session: &SessionId, head: Seq);
    /// The session was deleted. Must return without blocking.
    fn erased(&self, session: &SessionId);
}

/// Outbound: streamed text that is not in the journal yet. Survives the end of the process, but
/// not of the machine.
///
/// Calls are cheap and do not wait for a disk. A follower may be shown text once [`Self::push`]
/// has returned.
pub trait Drafts: Send + Sync {
    /// Appends a delta to the session's draft.
    fn push(&self, session: &SessionId, piece: &Delta) -> Result<(), StorageError>;
    /// The deltas of the draft, oldest first. An incomplete last record is left out.
    fn load(&self, session: &SessionId) -> Result<Vec<Delta>, StorageError>;
    /// Deletes the draft's content.
    fn clear(&self, session: &SessionId);
    /// Closes the files that are open for a session which leaves memory; the draft stays.
    fn release(&self, _session: &SessionId) {}
}

/// Outbound: content addressed by its SHA-256.
pub trait Blobs: Send + Sync {
    /// Stores content; durable when the future resolves.
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>>;
    /// Stores several contents, which is cheaper than one by one. Returns the ids in the
    /// same order.
    fn put_all(&self, contents: Vec<BlobBody>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>>;
    /// Reads a blob. Fails with [`StorageError::Missing`] if it does not exist.
    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>>;
    /// Reads a blob of at most `most` bytes; for a longer one returns its verified location
    /// in a file, if it is in one.
    fn body(&self, blob: &BlobId, most: u64) -> BoxFuture<'_, Result<BlobBody, StorageError>>;
}

/// The content of a file. Equal values have equal content; different values may have equal
/// content, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BlobBody {
    /// The content itself.
    Bytes(Vec<u8>),
    /// A part of a file, which may be too long for memory.
    File(FileRange),
    /// The id of content that is not available here: it is not stored, or it is an object
    /// of the git repository around the workspace (`git-` and its object name).
    Hash(BlobId),
}

/// A part of a file that is never written again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileRange {
    /// The file.
    pub file: PathBuf,
    /// Where the part begins, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
}

/// Outbound: all configured models.
pub trait Models: ModelProfiles {
    /// Calls a model. Dropping the stream cancels the call.
    fn stream(&self, prompt: Prompt) -> Box<dyn ModelStream>;
    /// The models that can be chosen.
    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>>;
}

/// Outbound: the capabilities of models. They may change while the daemon runs.
pub trait ModelProfiles: fmt::Debug + Send + Sync {
    /// The known capabilities of a model, or `None` if its provider is not configured.
    fn profile(&self, model: &ModelRef) -> Option<Profile>;

    /// The number of tokens in a text; exact if the model's tokenizer is known.
    fn count(&self, _model: &ModelRef, text: &str) -> TokenCount {
        TokenCount::guess(text)
    }

    /// The price of a model, if it is known.
    fn price(&self, _model: &ModelRef) -> Option<Price> {
        None
    }
}

/// The streamed response of a model.
pub trait ModelStream: Send {
    /// The chunks that arrived since the last call; [`Chunk::Finished`] is the last. Fails
    /// if the provider fails or the connection breaks.
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>>;
}

/// Outbound: one tool.
pub trait Tool: Send + Sync {
    /// The name, description and arguments of the tool.
    fn spec(&self) -> Arc<ToolSpec>;
    /// Assesses a call before it is approved. Must not change anything.
    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment>;
    /// Runs a call. When cancelled, the tool stops everything it started before it returns.
    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput>;
}

/// A tool call to run.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The turn.
    pub turn: TurnId,
    /// The folder in which the tool works.
    pub workspace: PathBuf,
    /// The arguments.
    pub input: Value,
    /// The pictures of the session, newest first, for tools that read them.
    pub pictures: Vec<message::CallArtifact>,
}

/// What a running tool gets in addition to its call.
#[derive(Clone)]
pub struct ToolContext {
    /// Receives output while the tool runs.
    pub progress: Arc<dyn ToolProgress>,
    /// Signals that the tool should stop.
    pub cancel: Arc<dyn CancelSignal>,
    /// Asks the user while the tool runs.
    pub questions: Arc<dyn UserQuestions>,
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolContext")
    }
}

/// Receives the output of a running tool.
pub trait ToolProgress: Send + Sync {
    /// Passes output on to followers.
    fn report(&self, text: &str);
}

/// Asks the user on behalf of a running tool.
pub trait UserQuestions: Send + Sync {
    /// Asks the user and waits for the answer, or until `withdrawn` resolves. The answer is
    /// `Declined` if no user can be asked.
    fn ask(
        &self,
        question: Question,
        withdrawn: Arc<dyn CancelSignal>,
    ) -> BoxFuture<'_, QuestionAnswer>;
}

/// Declines every question: for tools that run where no user can be asked.
#[derive(Clone, Copy, Debug)]
pub struct NobodyToAsk;

impl UserQuestions for NobodyToAsk {
    fn ask(&self, _: Question, _: Arc<dyn CancelSignal>) -> BoxFuture<'_, QuestionAnswer> {
        Box::pin(std::future::ready(QuestionAnswer::Declined))
    }
}

/// Signals a running tool to stop.
pub trait CancelSignal: Send + Sync {
    /// Resolves when the tool should stop.
    fn cancelled(&self) -> BoxFuture<'_, ()>;
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    /// The outcome, still without the artifacts of `files`.
    pub outcome: Outcome,
    /// Files to store with the outcome.
    pub files: Vec<OutputFile>,
    /// Changes that the call made to files of the workspace.
    pub changes: Vec<ChangedFile>,
}

impl ToolOutput {
    /// A result with files and without changes to the workspace.
    pub fn with_files(outcome: Outcome, files: Vec<OutputFile>) -> Self {
        Self { outcome, files, changes: Vec::new() }
    }
}

impl From<Outcome> for ToolOutput {
    fn from(outcome: Outcome) -> Self {
        Self::with_files(outcome, Vec::new())
    }
}

/// A file that a tool returns.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// A plain file name.
    pub name: String,
    /// The MIME type.
    pub mime: String,
    /// The content.
    pub content: Vec<u8>,
}

/// The change of one workspace file, with contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The path relative to the workspace, with `/` between folders.
    pub path: String,
    /// The file before the change; `None` if it did not exist.
    pub before: Option<FileContent>,
    /// The file after the change; `None` if it was deleted.
    pub after: Option<FileContent>,
}

/// A file at one moment, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// The content; `None` if it was not stored or if this kind of file has none.
    pub body: Option<BlobBody>,
    /// The length in bytes.
    pub size: u64,
    /// The permission bits, where known.
    pub mode: Option<u32>,
    /// The kind of file. The content of a symbolic link is its target path.
    pub shape: FileKind,
}

/// The file changes of a call that was interrupted by the end of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptedChanges {
    /// Files that differ from before the call.
    pub changes: Vec<ChangedFile>,
    /// Changes that may have happened and were not recorded.
    pub unrecorded: Vec<UnrecordedChange>,
}

/// Outbound: lists files for front ends.
pub trait DirectoryListing: Send + Sync {
    /// The paths of at most `most` files below a folder, sorted and relative to it. Fails
    /// with a message for people if the folder cannot be read.
    fn files<'a>(
        &'a self,
        folder: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<String>, String>>;
}

/// Whether a revert changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevertMode {
    /// Files are changed.
    Apply,
    /// Nothing is changed; only conflicts are reported.
    DryRun,
}

/// Outbound: the folders in which sessions work.
pub trait Workspaces: Send + Sync {
    /// Describes a workspace for a model, in at most `tokens` tokens. Unreadable parts are
    /// left out.
    fn gather_context<'a>(
        &'a self,
        workspace: &'a Path,
        tokens: u64,
    ) -> BoxFuture<'a, Vec<Section>>;
    /// The changes as one unified diff.
    fn diff<'a>(&'a self, workspace: &'a Path, changes: Vec<ChangedFile>) -> BoxFuture<'a, String>;
    /// Restores every file from `after` to `before`, or none: fails with a message if a
    /// file is in neither state because something else changed it. Repeating a revert has
    /// no effect.
    fn revert_changes<'a>(
        &'a self,
        workspace: &'a Path,
        changes: Vec<ChangedFile>,
        run: RevertMode,
    ) -> BoxFuture<'a, Result<(), String>>;
    /// The changes of a call that was interrupted by the end of the daemon; `None` if the
    /// call recorded no files before it started, so that its changes are unknown.
    fn interrupted_changes<'a>(
        &'a self,
        workspace: &'a Path,
        turn: &'a TurnId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Option<InterruptedChanges>>;
    /// Discards the recovery records of a turn. Called once the end of the turn is durable.
    fn turn_ended(&self, turn: &TurnId);
}

/// Outbound: notes of a workspace that outlive sessions. `root` is the workspace.
pub trait Memory: Send + Sync {
    /// Appends an entry to its file, whole or not at all; durable when the future resolves.
    fn write<'a>(
        &'a self,
        root: &'a Path,
        entry: MemoryEntry,
    ) -> BoxFuture<'a, Result<SavedEntry, memory::MemoryError>>;
    /// The best matching passages, best first, including edits that people made to the
    /// files.
    fn search<'a>(
        &'a self,
        root: &'a Path,
        query: MemoryQuery,
    ) -> BoxFuture<'a, Result<SearchResult, memory::MemoryError>>;
    /// Lines of a memory file, by its path relative to the workspace.
    fn get<'a>(
        &'a self,
        root: &'a Path,
        path: &'a str,
        lines: LineRange,
    ) -> BoxFuture<'a, Result<Passage, memory::MemoryError>>;
    /// The notes that every session starts with, in at most `tokens` tokens. Unreadable
    /// files are left out.
    fn bootstrap<'a>(&'a self, root: &'a Path, tokens: u64) -> BoxFuture<'a, Vec<Section>>;
}

/// Outbound: the current time and random numbers, replaceable in tests.
pub trait Clock: Send + Sync {
    /// The time and a fresh id supply for one decision.
    fn stamp(&self) -> Stamp;
    /// The current time.
    fn now(&self) -> Time;
}
