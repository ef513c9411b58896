//! The session tree on disk: `sessions/<id>/{session.json, events.ndjson, attachments/, artifacts/}`.
//!
//! A projection for people and scripts, rebuilt from the journal if it is inconsistent. Events are appended
//! as they happen; text that became durable together is one event. `session.json` is as large as the
//! session, so it is written when a turn ends, and for a larger session only after much has changed or
//! after a quiet time. `position.json` records how much of the journal both contain; what a crash left
//! after that point is cut off.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use quintet_kernel::event::{Event, Seq};
use quintet_kernel::port::{Blobs, ERASED_SPACE, Error, Preferences, Sessions};
use quintet_kernel::{BlobId, Cursor, Item, SessionId, State, Time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::fs;
use tokio::io::AsyncWriteExt;
use tokio::sync::Mutex as AsyncMutex;

use super::encode::Link;
use super::position::Position;
use super::shape;
use crate::change_feed::Change;
use crate::projection::{DEFERRED_INTERVAL, Deferred, Projection, ProjectionError, is_transient};

const EVENTS_FILE: &str = "events.ndjson";
const SESSION_FILE: &str = "session.json";
const POSITION_FILE: &str = "position.json";
/// The position of the whole tree.
const SINCE_FILE: &str = ".since.json";
/// Below this size, `session.json` is written after every turn.
const SMALL_SESSION_LIMIT: u64 = 16 * 1024;
/// Below this size, `session.json` is written if no turn follows at once.
const LARGE_SESSION_LIMIT: u64 = 256 * 1024;
/// A larger `session.json` is written when it would double, or after this many intervals without events.
const QUIET_INTERVALS: u32 = 60 / DEFERRED_INTERVAL.as_secs() as u32;
/// The position of the whole tree stays this far behind while a write is deferred.
const DEFERRED_LIMIT: Duration = Duration::from_secs(120);
/// The minimum length of `position.json`, so that it can be overwritten in place.
const POSITION_BYTES: usize = 192;

/// The session tree. Cheap to clone.
#[derive(Clone)]
pub struct Tree {
    root: Arc<Path>,
    blobs: Arc<dyn Blobs>,
    sessions: Arc<dyn Sessions>,
    /// Reads sessions when the runtime is shutting down.
    archive: Arc<dyn Sessions>,
    /// One lock per session, because a folder may have only one writer.
    writing: Arc<Mutex<HashMap<SessionId, Arc<AsyncMutex<()>>>>>,
    /// Sessions whose `session.json` is written later.
    stale: Arc<Mutex<HashMap<SessionId, Stale>>>,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Tree {
    /// A tree of these sessions in `root`. The archive is read while the runtime shuts down.
    pub fn new(
        root: PathBuf,
        blobs: Arc<dyn Blobs>,
        sessions: Arc<dyn Sessions>,
        archive: Arc<dyn Sessions>,
    ) -> Self {
        let (writing, stale) = Default::default();
        Self { root: root.into(), blobs, sessions, archive, writing, stale }
    }

    /// The projection that keeps the tree up to date. The preferences contain the list of erased sessions.
    pub async fn projection(self, preferences: Arc<dyn Preferences>) -> impl Projection {
        TreeProjection::new(self, preferences).await
    }

    /// Writes the folders of all sessions and returns their number. Fails if a folder cannot be written.
    pub async fn export(&self) -> io::Result<usize> {
        let summaries = self.sessions.list(usize::MAX).await.map_err(io::Error::other)?;
        for summary in &summaries {
            let named =
                |error: ProjectionError| io::Error::other(format!("{}: {error}", summary.id));
            self.project(&summary.id).await.map_err(named)?;
        }
        Ok(summaries.len())
    }

    /// Brings a session's folder up to date, or removes it if the session was deleted.
    pub async fn write(&self, session: &SessionId) {
        if let Err(error) = self.update(session).await {
            tracing::warn!(%session, %error, "writing the session's folder failed");
        }
    }

    async fn update(&self, session: &SessionId) -> Result<(), ProjectionError> {
        let lock = self.lock_of(session);
        let _only = lock.lock().await;
        match self.project(session).await {
            Err(ProjectionError::Session(Error::NotFound(_))) => self.remove(session).await,
            // The folder belongs to a deleted session with the same name.
            Err(ProjectionError::Session(Error::Ahead(..))) => {
                self.remove(session).await?;
                self.project(session).await
            }
            written => written,
        }
    }

    /// Removes the folder of a deleted session.
    async fn remove(&self, session: &SessionId) -> Result<(), ProjectionError> {
        match fs::remove_dir_all(self.folder(session)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn project(&self, id: &SessionId) -> Result<(), ProjectionError> {
        let folder = self.folder(id);
        let mut written: FolderState = load(&folder.join(POSITION_FILE)).await.unwrap_or_default();
        fs::create_dir_all(folder.join("attachments")).await?;
        let mut file = open_log(&folder.join(EVENTS_FILE), &mut written).await?;
        let mut follow = self.sessions.follow(id, Cursor::after(written.seq)).await?;
        let mut link = Link::new(id.clone(), Position::After(Cursor::after(written.seq)));
        let mut turn_ended = written.seq == 0;
        let (first, before) = (written.seq, written.bytes);
        while follow.position().seq < follow.head() {
            let Some(items) = follow.next().await? else { break };
            let mut lines = Vec::new();
            for item in join_text(items) {
                self.files(&folder, &item).await?;
                turn_ended |= written.apply(&item);
                for frame in link.encode(&item) {
                    lines.extend_from_slice(&frame.json);
                    lines.push(b'\n');
                }
            }
            file.write_all(&lines).await?;
            written.bytes += lines.len() as u64;
        }
        written.seq = follow.position().seq;
        file.flush().await?;
        let changed = written.seq > first;
        written.unwritten += if changed { (written.bytes - before).max(1) } else { 0 };
        if (turn_ended || !written.running) && written.session_is_due(changed) {
            let session = self.session_json(id).await?;
            replace(&folder.join(SESSION_FILE), &session).await?;
            (written.session_bytes, written.unwritten) = (session.len() as u64, 0);
        }
        self.note_stale(id, Stale::of(&written));
        write_position(&folder.join(POSITION_FILE), &written).await?;
        Ok(())
    }

    fn note_stale(&self, id: &SessionId, stale: Option<Stale>) {
        let mut known = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        match stale {
            Some(stale) => known.insert(id.clone(), stale),
            None => known.remove(id),
        };
    }

    /// Takes the deferred sessions that are due.
    fn take_stale(&self, which: Deferred) -> Vec<SessionId> {
        let mut known = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        let due = |stale: &mut Stale| which == Deferred::All || stale.is_due();
        known.extract_if(|_, stale| due(stale)).map(|(id, _)| id).collect()
    }

    fn has_stale(&self) -> bool {
        !self.stale.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    async fn session_json(&self, id: &SessionId) -> Result<Vec<u8>, ProjectionError> {
        let state = match self.sessions.view(id).await {
            Err(Error::Closing) => self.archive.view(id).await?,
            view => view?,
        };
        // The text may be long, so it is not encoded on an async thread.
        let text = tokio::task::spawn_blocking(move || session_json(&state)).await;
        Ok(text.map_err(io::Error::other)?)
    }

    /// Copies the attachments and artifacts of an event. A file that can never be copied does not stop the
    /// rest of the session from being written.
    async fn files(&self, folder: &Path, item: &Item) -> Result<(), ProjectionError> {
        let Item::Event(record) = item else { return Ok(()) };
        match &record.event {
            Event::AttachmentAdded(file) => {
                self.copy_or_skip(&file.blob, &folder.join("attachments"), &file.name).await
            }
            Event::CallCompleted { turn, call, outcome, .. } => {
                let artifacts = folder.join("artifacts").join(turn.as_str());
                for file in &outcome.artifacts {
                    self.copy_or_skip(&file.blob, &artifacts, &format!("{call}-{}", file.name))
                        .await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn copy_or_skip(
        &self,
        blob: &BlobId,
        folder: &Path,
        name: &str,
    ) -> Result<(), ProjectionError> {
        match self.copy(blob, folder, name).await {
            Err(error) if !is_transient(&error) => {
                tracing::warn!(folder = %folder.display(), name, %error, "skipping a file that cannot be copied");
                Ok(())
            }
            done => done,
        }
    }

    async fn copy(&self, blob: &BlobId, folder: &Path, name: &str) -> Result<(), ProjectionError> {
        // Names come from the kernel and the tools; even so, they must not leave the folder.
        let Some(name) = Path::new(name).file_name() else { return Ok(()) };
        let content = self.blobs.get(blob).await.map_err(Error::Storage)?;
        fs::create_dir_all(folder).await?;
        replace(&folder.join(name), &content).await?;
        Ok(())
    }

    fn folder(&self, session: &SessionId) -> PathBuf {
        self.root.join(session.as_str())
    }

    fn lock_of(&self, session: &SessionId) -> Arc<AsyncMutex<()>> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        writing.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(writing.entry(session.clone()).or_default())
    }
}

/// The tree, and the time up to which it is complete.
struct TreeProjection {
    tree: Tree,
    since: Time,
    /// Stores the list of erased sessions.
    preferences: Arc<dyn Preferences>,
    /// Erased sessions whose folders are still to be removed.
    erased: HashSet<SessionId>,
    /// Erased sessions whose folders were removed; they are deleted from the list at the next checkpoint.
    removed: HashSet<SessionId>,
}

impl TreeProjection {
    async fn new(tree: Tree, preferences: Arc<dyn Preferences>) -> Self {
        let since = load(&tree.root.join(SINCE_FILE)).await.unwrap_or_default();
        let (erased, removed) = Default::default();
        Self { tree, since, preferences, erased, removed }
    }

    /// Writes the deferred sessions. A write that may work later is deferred again; returns the last such
    /// error.
    async fn write_stale(&self, which: Deferred) -> Result<(), ProjectionError> {
        let mut failed = Ok(());
        for session in self.tree.take_stale(which) {
            let Err(error) = self.tree.update(&session).await else { continue };
            tracing::warn!(%session, %error, "writing the session's folder failed");
            if is_transient(&error) {
                self.tree.note_stale(&session, Some(Stale::default()));
                failed = Err(error);
            }
        }
        failed
    }

    async fn clear_removed(&mut self) -> Result<(), ProjectionError> {
        let clear = |id: &SessionId| {
            self.preferences.set_preference(ERASED_SPACE, id.as_str(), Value::Null)
        };
        try_join_all(self.removed.iter().map(clear)).await?;
        self.removed.clear();
        Ok(())
    }
}

impl Projection for TreeProjection {
    const NAME: &'static str = "session tree";

    fn since(&self) -> Time {
        self.since
    }

    async fn has(&mut self, session: &SessionId, head: Seq) -> bool {
        let position = self.tree.folder(session).join(POSITION_FILE);
        let written = load::<FolderState>(&position).await;
        written.is_some_and(|written| written.seq == head && written.unwritten == 0)
    }

    async fn erased(&mut self) -> Result<Vec<SessionId>, ProjectionError> {
        let names = self.preferences.names(ERASED_SPACE).await?;
        self.erased = names.iter().filter_map(|name| SessionId::parse(name)).collect();
        Ok(self.erased.iter().cloned().collect())
    }

    async fn update(&mut self, session: &SessionId, change: Change) -> Result<(), ProjectionError> {
        match change {
            Change::Head(_) => self.tree.update(session).await?,
            Change::Erased => {
                let lock = self.tree.lock_of(session);
                let _only = lock.lock().await;
                self.tree.remove(session).await?;
                self.erased.insert(session.clone());
            }
        }
        self.removed.extend(self.erased.take(session));
        Ok(())
    }

    fn has_deferred(&self) -> bool {
        self.tree.has_stale()
    }

    async fn write_deferred(&mut self, which: Deferred) -> Result<(), ProjectionError> {
        self.write_stale(which).await
    }

    async fn checkpoint(&mut self, since: Time) -> Result<(), ProjectionError> {
        // Deferred writes must be found again after a crash.
        let since = if self.tree.has_stale() { since.before(DEFERRED_LIMIT) } else { since };
        fs::create_dir_all(&self.tree.root).await?;
        replace(&self.tree.root.join(SINCE_FILE), &json(&since)).await?;
        self.since = since;
        self.clear_removed().await
    }
}

/// A `session.json` that is written later.
#[derive(Debug, Default)]
struct Stale {
    /// True if a turn is open; its end triggers the next check.
    running: bool,
    large: bool,
    /// The number of intervals without events.
    quiet: u32,
}

impl Stale {
    fn of(written: &FolderState) -> Option<Self> {
        let large = written.session_bytes >= LARGE_SESSION_LIMIT;
        (written.unwritten > 0).then_some(Self { running: written.running, large, quiet: 0 })
    }

    /// Counts an interval without events; true if there were enough.
    fn is_due(&mut self) -> bool {
        self.quiet += 1;
        let enough = if self.large { QUIET_INTERVALS } else { 2 };
        !self.running && self.quiet >= enough
    }
}

/// The state of a session's folder.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FolderState {
    /// The last event in the folder.
    seq: Seq,
    /// The length of the event log.
    bytes: u64,
    /// True if a turn was open after the last event.
    running: bool,
    /// The length of `session.json`.
    #[serde(default)]
    session_bytes: u64,
    /// Bytes of the event log after the last write of `session.json`; at least 1 if anything changed.
    #[serde(default)]
    unwritten: u64,
}

impl FolderState {
    /// True if `session.json` should be written now: it is small, much has changed, or the session is
    /// quiet.
    fn session_is_due(&self, changed: bool) -> bool {
        let small = self.session_bytes < SMALL_SESSION_LIMIT;
        let grown = self.unwritten >= self.session_bytes;
        self.unwritten > 0 && (small || grown || !changed)
    }

    /// Tracks whether a turn is open; true if this item ends one.
    fn apply(&mut self, item: &Item) -> bool {
        let Item::Event(record) = item else { return false };
        let ended = matches!(
            record.event,
            Event::TurnCompleted { .. } | Event::TurnFailed { .. } | Event::TurnCancelled { .. }
        );
        self.running = match record.event {
            Event::TurnStarted { .. } => true,
            _ => self.running && !ended,
        };
        ended
    }
}

/// Joins consecutive pieces of text, so that the log has one line per commit instead of one per piece.
fn join_text(items: Vec<Item>) -> Vec<Item> {
    let mut joined = Vec::new();
    let mut items = items.into_iter().peekable();
    while let Some(mut item) = items.next() {
        if let Item::Text { position, seq, step, channel, text, .. } = &mut item {
            let mut whole = String::from(&**text);
            let continues = |next: &Item| match next {
                Item::Text { step: of, channel: kind, .. } => of == step && kind == channel,
                Item::Event(_) | Item::Progress { .. } => false,
            };
            while let Some(Item::Text { position: end, seq: last, text: more, .. }) =
                items.next_if(|next| continues(next))
            {
                (*position, *seq) = (end, last);
                whole.push_str(&more);
            }
            *text = whole.into();
        }
        joined.push(item);
    }
    joined
}

/// Reads a JSON file; `None` if it is missing or invalid, in which case it is rewritten.
async fn load<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).await.ok()?).ok()
}

/// Opens the event log and cuts it to the recorded length; starts again if it is shorter.
async fn open_log(path: &Path, written: &mut FolderState) -> io::Result<fs::File> {
    let file = fs::OpenOptions::new().create(true).append(true).open(path).await?;
    let bytes = file.metadata().await?.len();
    if bytes < written.bytes {
        *written = FolderState::default();
    }
    if bytes != written.bytes {
        file.set_len(written.bytes).await?;
    }
    Ok(file)
}

fn session_json(state: &State) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(&shape::session(state)).expect("our types serialize");
    text.push(b'\n');
    text
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("our types serialize")
}

/// Overwrites the position in place, padded with spaces, because replacing a small file costs a new page
/// each time. A torn write makes it invalid, and the folder is rewritten.
async fn write_position(path: &Path, written: &FolderState) -> io::Result<()> {
    let mut text = json(written);
    text.resize(text.len().max(POSITION_BYTES), b' ');
    let mut file =
        fs::OpenOptions::new().create(true).write(true).truncate(false).open(path).await?;
    file.write_all(&text).await?;
    file.flush().await
}

/// Replaces a file atomically. A folder has one writer, so one temporary name is enough; a name with the
/// file's own in it could be too long.
async fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_file_name(".new");
    fs::write(&temporary, content).await?;
    fs::rename(&temporary, path).await
}

#[cfg(test)]
mod tests;
