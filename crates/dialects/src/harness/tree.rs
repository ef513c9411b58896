//! The session tree on disk: `sessions/<id>/{session.json, events.ndjson, attachments/, artifacts/}`.
//!
//! A projection for people and scripts, rebuilt from the journal whenever it does not fit. Events are
//! appended as they come, text that was made durable together as one of them. `session.json` is as large
//! as the session: it is written when a turn is over, that of a larger session only if much is new or
//! nothing has happened for a while. `position.json` says how far both go; what a crash left behind that point
//! is cut off.

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
/// The position of the whole tree, beside the folders.
const SINCE_FILE: &str = ".since.json";
/// A `session.json` of fewer bytes is written after every turn.
const SMALL_SESSION_LIMIT: u64 = 16 * 1024;
/// One of fewer bytes is written as soon as no turn follows at once.
const LARGE_SESSION_LIMIT: u64 = 256 * 1024;
/// Any other is written when there is as much new as there was, or when nothing has happened for so many
/// intervals.
const QUIET_INTERVALS: u32 = 60 / DEFERRED_INTERVAL.as_secs() as u32;
/// The position of the whole tree stays so far behind while something is put off.
const DEFERRED_LIMIT: Duration = Duration::from_secs(120);
/// How long `position.json` is at least, so that it can be written over in place.
const POSITION_BYTES: usize = 192;

/// The session tree. Cheap to clone.
#[derive(Clone)]
pub struct Tree {
    root: Arc<Path>,
    blobs: Arc<dyn Blobs>,
    sessions: Arc<dyn Sessions>,
    /// Reads sessions whose reader is gone.
    archive: Arc<dyn Sessions>,
    /// One writer a session.
    writing: Arc<Mutex<HashMap<SessionId, Arc<AsyncMutex<()>>>>>,
    /// Sessions whose `session.json` is to be written later.
    stale: Arc<Mutex<HashMap<SessionId, Stale>>>,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Tree {
    /// A tree of these sessions below `root`. The archive is read where they are closed.
    pub fn new(
        root: PathBuf,
        blobs: Arc<dyn Blobs>,
        sessions: Arc<dyn Sessions>,
        archive: Arc<dyn Sessions>,
    ) -> Self {
        let (writing, stale) = Default::default();
        Self { root: root.into(), blobs, sessions, archive, writing, stale }
    }

    /// The tree as something that is kept up to date. Sessions that were erased are noted in these
    /// preferences.
    pub async fn projection(self, notes: Arc<dyn Preferences>) -> impl Projection {
        TreeProjection::new(self, notes).await
    }

    /// Writes the folders of all sessions; returns how many.
    pub async fn export(&self) -> io::Result<usize> {
        let summaries = self.sessions.list(usize::MAX).await.map_err(io::Error::other)?;
        for summary in &summaries {
            let named =
                |error: ProjectionError| io::Error::other(format!("{}: {error}", summary.id));
            self.project(&summary.id).await.map_err(named)?;
        }
        Ok(summaries.len())
    }

    /// Brings one session's folder up to date; it may not be there any more.
    pub async fn write(&self, session: &SessionId) {
        if let Err(error) = self.update(session).await {
            tracing::warn!(%session, %error, "the session's folder is behind");
        }
    }

    async fn update(&self, session: &SessionId) -> Result<(), ProjectionError> {
        let lock = self.lock_of(session);
        let _only = lock.lock().await;
        match self.project(session).await {
            Err(ProjectionError::Session(Error::NotFound(_))) => self.remove(session).await,
            // What is there was of another session by that name.
            Err(ProjectionError::Session(Error::Ahead(..))) => {
                self.remove(session).await?;
                self.project(session).await
            }
            written => written,
        }
    }

    /// The session is gone, and nothing of it stays behind.
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
        let mut file = open_at(&folder.join(EVENTS_FILE), &mut written).await?;
        let mut follow = self.sessions.follow(id, Cursor::after(written.seq)).await?;
        let mut link = Link::new(id.clone(), Position::After(Cursor::after(written.seq)));
        let mut turn_over = written.seq == 0;
        let (first, before) = (written.seq, written.bytes);
        while follow.position().seq < follow.head() {
            let Some(items) = follow.next().await? else { break };
            let mut lines = Vec::new();
            for item in joined(items) {
                self.files(&folder, &item).await?;
                turn_over |= written.take(&item);
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
        if (turn_over || !written.running) && written.session_is_due(changed) {
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

    /// Takes what is to be written now of what was put off.
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
        // As long as the session is: nobody else should have to wait for it.
        let text = tokio::task::spawn_blocking(move || session_json(&state)).await;
        Ok(text.map_err(io::Error::other)?)
    }

    /// Attachments and artifacts that an event mentions. One that will never be there keeps nothing else
    /// of the session from being written.
    async fn files(&self, folder: &Path, item: &Item) -> Result<(), ProjectionError> {
        let Item::Event(record) = item else { return Ok(()) };
        match &record.event {
            Event::AttachmentAdded(file) => {
                self.copy_if_any(&file.blob, &folder.join("attachments"), &file.name).await
            }
            Event::CallCompleted { turn, call, outcome, .. } => {
                let place = folder.join("artifacts").join(turn.as_str());
                for file in &outcome.artifacts {
                    self.copy_if_any(&file.blob, &place, &format!("{call}-{}", file.name)).await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn copy_if_any(
        &self,
        blob: &BlobId,
        folder: &Path,
        name: &str,
    ) -> Result<(), ProjectionError> {
        match self.copy(blob, folder, name).await {
            Err(error) if !is_transient(&error) => {
                tracing::warn!(folder = %folder.display(), name, %error, "a file is left out");
                Ok(())
            }
            done => done,
        }
    }

    async fn copy(&self, blob: &BlobId, folder: &Path, name: &str) -> Result<(), ProjectionError> {
        // Names are the kernel's and the tools' own; still, never leave the folder.
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

/// The tree and the time before which nothing is missing in it.
struct TreeProjection {
    tree: Tree,
    since: Time,
    /// Where sessions are noted that were erased.
    notes: Arc<dyn Preferences>,
    /// Notes that are not needed any more once a session's folder is up to date.
    noted: HashSet<SessionId>,
    /// Notes that are not needed any more.
    done: HashSet<SessionId>,
}

impl TreeProjection {
    async fn new(tree: Tree, notes: Arc<dyn Preferences>) -> Self {
        let since = load(&tree.root.join(SINCE_FILE)).await.unwrap_or_default();
        let (noted, done) = Default::default();
        Self { tree, since, notes, noted, done }
    }

    /// Writes what was put off. What fails and may work later is put off again; gives one such failure.
    async fn write_stale(&self, which: Deferred) -> Result<(), ProjectionError> {
        let mut failed = Ok(());
        for session in self.tree.take_stale(which) {
            let Err(error) = self.tree.update(&session).await else { continue };
            tracing::warn!(%session, %error, "the session's folder is behind");
            if is_transient(&error) {
                self.tree.note_stale(&session, Some(Stale::default()));
                failed = Err(error);
            }
        }
        failed
    }

    async fn forget_notes(&mut self) -> Result<(), ProjectionError> {
        let forget =
            |id: &SessionId| self.notes.set_preference(ERASED_SPACE, id.as_str(), Value::Null);
        try_join_all(self.done.iter().map(forget)).await?;
        self.done.clear();
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
        let names = self.notes.names(ERASED_SPACE).await?;
        self.noted = names.iter().filter_map(|name| SessionId::parse(name)).collect();
        Ok(self.noted.iter().cloned().collect())
    }

    async fn update(&mut self, session: &SessionId, change: Change) -> Result<(), ProjectionError> {
        match change {
            Change::Head(_) => self.tree.update(session).await?,
            Change::Erased => {
                let lock = self.tree.lock_of(session);
                let _only = lock.lock().await;
                self.tree.remove(session).await?;
                self.noted.insert(session.clone());
            }
        }
        self.done.extend(self.noted.take(session));
        Ok(())
    }

    fn has_deferred(&self) -> bool {
        self.tree.has_stale()
    }

    async fn write_deferred(&mut self, which: Deferred) -> Result<(), ProjectionError> {
        self.write_stale(which).await
    }

    async fn checkpoint(&mut self, since: Time) -> Result<(), ProjectionError> {
        // What is put off must be found again after a crash.
        let since = if self.tree.has_stale() { since.before(DEFERRED_LIMIT) } else { since };
        fs::create_dir_all(&self.tree.root).await?;
        replace(&self.tree.root.join(SINCE_FILE), &json(&since)).await?;
        self.since = since;
        self.forget_notes().await
    }
}

/// A `session.json` that is to be written later.
#[derive(Debug, Default)]
struct Stale {
    /// True if a turn is under way, at whose end the file is looked at again.
    running: bool,
    large: bool,
    /// For how many intervals nothing has happened.
    quiet: u32,
}

impl Stale {
    fn of(written: &FolderState) -> Option<Self> {
        let large = written.session_bytes >= LARGE_SESSION_LIMIT;
        (written.unwritten > 0).then_some(Self { running: written.running, large, quiet: 0 })
    }

    /// Counts an interval in which nothing happened; true if there were enough.
    fn is_due(&mut self) -> bool {
        self.quiet += 1;
        let enough = if self.large { QUIET_INTERVALS } else { 2 };
        !self.running && self.quiet >= enough
    }
}

/// How far a folder goes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FolderState {
    /// The last event.
    seq: Seq,
    /// How long the event log is with it.
    bytes: u64,
    /// True if that event is in the middle of a turn.
    running: bool,
    /// How long `session.json` is.
    #[serde(default)]
    session_bytes: u64,
    /// How much of the event log came after `session.json` was written, in bytes; at least one if
    /// anything did.
    #[serde(default)]
    unwritten: u64,
}

impl FolderState {
    /// True if `session.json` is worth writing: it is small, much of it is new, or nothing else is to be
    /// done.
    fn session_is_due(&self, changed: bool) -> bool {
        let small = self.session_bytes < SMALL_SESSION_LIMIT;
        let grown = self.unwritten >= self.session_bytes;
        self.unwritten > 0 && (small || grown || !changed)
    }

    /// Notes a turn's beginning and end; true if this is an end.
    fn take(&mut self, item: &Item) -> bool {
        let Item::Event(record) = item else { return false };
        let over = matches!(
            record.event,
            Event::TurnCompleted { .. } | Event::TurnFailed { .. } | Event::TurnCancelled { .. }
        );
        self.running = match record.event {
            Event::TurnStarted { .. } => true,
            _ => self.running && !over,
        };
        over
    }
}

/// The items with text that belongs together as one: a log needs no more lines than commits.
fn joined(items: Vec<Item>) -> Vec<Item> {
    let mut joined = Vec::new();
    let mut items = items.into_iter().peekable();
    while let Some(mut item) = items.next() {
        if let Item::Text { position, seq, step, channel, text, .. } = &mut item {
            let mut whole = String::from(&**text);
            let goes_on = |next: &Item| match next {
                Item::Text { step: of, channel: kind, .. } => of == step && kind == channel,
                Item::Event(_) | Item::Progress { .. } => false,
            };
            while let Some(Item::Text { position: end, seq: last, text: more, .. }) =
                items.next_if(|next| goes_on(next))
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

/// Nothing if there is no such file or it makes no sense, in which case it is written anew.
async fn load<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).await.ok()?).ok()
}

/// The event log, cut to what is known to be whole; from the start if it is shorter than that.
async fn open_at(path: &Path, written: &mut FolderState) -> io::Result<fs::File> {
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

/// Writes a position over the one before, with spaces at its end: a file that is replaced costs a new page
/// each time. One that is torn makes no sense, and the folder is written anew.
async fn write_position(path: &Path, written: &FolderState) -> io::Result<()> {
    let mut text = json(written);
    text.resize(text.len().max(POSITION_BYTES), b' ');
    let mut file =
        fs::OpenOptions::new().create(true).write(true).truncate(false).open(path).await?;
    file.write_all(&text).await?;
    file.flush().await
}

/// Readers see the old file or the new one. A session's folder has one writer, so one name is enough for
/// what is not whole yet; with the file's own in it, it could be too long.
async fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_file_name(".new");
    fs::write(&draft, content).await?;
    fs::rename(&draft, path).await
}

#[cfg(test)]
mod tests;
