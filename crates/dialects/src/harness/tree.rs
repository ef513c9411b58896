//! The session tree on disk: `sessions/<id>/{session.json, events.ndjson, attachments/, artifacts/}`.
//!
//! A projection for people and scripts, written behind the journal by a follower and rebuilt from it
//! whenever it does not fit. `session.json` says how far `events.ndjson` goes; what a crash left
//! behind that point is cut off.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::event::{Event, Seq};
use quintet_kernel::port::{Blobs, Error, Hints, Sessions};
use quintet_kernel::{BlobId, Cursor, Item, SessionId, State};
use serde_json::{Value, json};
use tokio::fs;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio_util::sync::CancellationToken;

use super::encode::Link;
use super::position::Position;
use super::shape;

/// Changes are gathered for so long before they are written.
const GATHER: Duration = Duration::from_millis(250);

/// The session tree.
#[derive(Clone)]
pub struct Tree {
    root: Arc<Path>,
    blobs: Arc<dyn Blobs>,
    sessions: Arc<std::sync::OnceLock<Arc<dyn Sessions>>>,
    dirty: Arc<Dirty>,
    /// One writer a session.
    writing: Arc<Mutex<HashMap<SessionId, Arc<AsyncMutex<()>>>>>,
}

#[derive(Default)]
struct Dirty {
    sessions: Mutex<HashMap<SessionId, Seq>>,
    changed: Notify,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Tree {
    /// A tree below `root`.
    pub fn new(root: PathBuf, blobs: Arc<dyn Blobs>) -> Self {
        Self {
            root: root.into(),
            blobs,
            sessions: Arc::default(),
            dirty: Arc::default(),
            writing: Arc::default(),
        }
    }

    /// Follows these sessions until told to stop; what is dirty then is still written.
    pub async fn run(self, sessions: Arc<dyn Sessions>, stop: CancellationToken) {
        let _ = self.sessions.set(sessions);
        self.catch_up().await;
        loop {
            tokio::select! {
                () = self.dirty.changed.notified() => {}
                () = stop.cancelled() => break,
            }
            tokio::time::sleep(GATHER).await;
            for session in self.dirty.take() {
                self.write(&session).await;
            }
        }
        for session in self.dirty.take() {
            self.write(&session).await;
        }
    }

    /// Writes the folders of all these sessions; gives how many.
    pub async fn export(&self, sessions: &dyn Sessions) -> io::Result<usize> {
        let cards = sessions.list(usize::MAX).await.map_err(io::Error::other)?;
        for card in &cards {
            let named = |error: Trouble| io::Error::other(format!("{}: {error}", card.id));
            self.project(sessions, &card.id).await.map_err(named)?;
        }
        Ok(cards.len())
    }

    /// Brings one session's folder up to date.
    pub async fn write(&self, session: &SessionId) {
        let Some(sessions) = self.sessions.get() else { return };
        let lock = self.lock_of(session);
        let _only = lock.lock().await;
        let written = match self.project(&**sessions, session).await {
            Err(Trouble::Session(Error::NotFound(_))) => self.remove(session).await,
            written => written,
        };
        if let Err(error) = written {
            tracing::warn!(%session, %error, "the session's folder is behind");
        }
    }

    /// The session is gone, and nothing of it stays behind.
    async fn remove(&self, session: &SessionId) -> Result<(), Trouble> {
        match fs::remove_dir_all(self.folder(session)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Sessions that changed just before a crash are behind; the newest are looked at.
    async fn catch_up(&self) {
        let Some(sessions) = self.sessions.get() else { return };
        let Ok(cards) = sessions.list(256).await else { return };
        for card in cards {
            let known = Written::load(&self.folder(&card.id)).await;
            if known.is_none_or(|known| known.updated != card.updated.to_string()) {
                self.write(&card.id).await;
            }
        }
    }

    async fn project(&self, sessions: &dyn Sessions, id: &SessionId) -> Result<(), Trouble> {
        let folder = self.folder(id);
        fs::create_dir_all(folder.join("attachments")).await?;
        let mut written = Written::load(&folder).await.unwrap_or_default();
        let mut file = open_at(&folder.join("events.ndjson"), &mut written).await?;
        let from = Position::After(Cursor::after(written.seq));
        let mut follow = sessions.follow(id, from.cursor()).await?;
        let mut link = Link::new(id.clone(), from);
        while follow.position().seq < follow.head() {
            let Some(items) = follow.next().await? else { break };
            let mut lines = Vec::new();
            for item in &items {
                self.files(&folder, item).await?;
                for frame in link.encode(item) {
                    lines.extend_from_slice(&frame.json);
                    lines.push(b'\n');
                }
            }
            file.write_all(&lines).await?;
            written.bytes += lines.len() as u64;
        }
        written.seq = follow.position().seq;
        file.flush().await?;
        let state = sessions.view(id).await?;
        written.updated = state.updated.to_string();
        replace(&folder.join("session.json"), &session_json(&state, &written)).await?;
        Ok(())
    }

    /// Attachments and artifacts that an event mentions.
    async fn files(&self, folder: &Path, item: &Item) -> Result<(), Trouble> {
        let Item::Event(record) = item else { return Ok(()) };
        match &record.event {
            Event::AttachmentAdded(file) => {
                self.copy(&file.blob, &folder.join("attachments"), &file.name).await
            }
            Event::CallCompleted { turn, call, outcome, .. } => {
                let place = folder.join("artifacts").join(turn.as_str());
                for file in &outcome.artifacts {
                    self.copy(&file.blob, &place, &format!("{call}-{}", file.name)).await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn copy(&self, blob: &BlobId, folder: &Path, name: &str) -> Result<(), Trouble> {
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

impl Hints for Tree {
    fn published(&self, session: &SessionId, head: Seq) {
        let mut dirty = self.dirty.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.insert(session.clone(), head);
        drop(dirty);
        self.dirty.changed.notify_one();
    }

    /// Its folder goes with it, when the next changes are written.
    fn erased(&self, session: &SessionId) {
        self.published(session, Seq::MAX);
    }
}

impl Dirty {
    fn take(&self) -> Vec<SessionId> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.drain().map(|(session, _)| session).collect()
    }
}

#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Session(#[from] Error),
}

/// How far a folder goes.
#[derive(Debug, Default)]
struct Written {
    seq: Seq,
    bytes: u64,
    updated: String,
}

impl Written {
    /// Nothing if there is no folder or it makes no sense, in which case it is written anew.
    async fn load(folder: &Path) -> Option<Self> {
        let bytes = fs::read(folder.join("session.json")).await.ok()?;
        let session: Value = serde_json::from_slice(&bytes).ok()?;
        Some(Self {
            seq: session["projection"]["seq"].as_u64()?,
            bytes: session["projection"]["bytes"].as_u64()?,
            updated: session["updated_at"].as_str()?.into(),
        })
    }
}

/// The event log, cut to what is known to be whole; from the start if it is shorter than that.
async fn open_at(path: &Path, written: &mut Written) -> io::Result<fs::File> {
    let file = fs::OpenOptions::new().create(true).append(true).open(path).await?;
    if file.metadata().await?.len() < written.bytes {
        *written = Written::default();
    }
    file.set_len(written.bytes).await?;
    Ok(file)
}

fn session_json(state: &State, written: &Written) -> Vec<u8> {
    let mut session = serde_json::to_value(shape::session(state)).expect("our own types serialize");
    session["projection"] = json!({ "seq": written.seq, "bytes": written.bytes });
    let mut text = serde_json::to_vec_pretty(&session).expect("values serialize");
    text.push(b'\n');
    text
}

/// Readers see the old file or the new one.
async fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    fs::write(&draft, content).await?;
    fs::rename(&draft, path).await
}
