//! The index of the messages of all sessions: an SQLite file next to the journal.
//!
//! The reader of the journal writes to it ([`Collector`], [`SessionUpdate`]); searches use their
//! own connections and do not wait for writes. Deleted messages leave no words behind in the file. An index
//! that is damaged or of another version is deleted and rebuilt.

mod collect;
mod embed;
mod excerpt;
mod file;
mod find;
mod highlight;
mod write;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::event::Seq;
use quintet_kernel::memory::SearchMethod;
use quintet_kernel::port::{
    BoxFuture, Embedder, SearchError, SenseError, SessionHits, SessionQuery, SessionSearch,
    StorageError,
};
use quintet_kernel::{SessionId, Time};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use crate::embedding;

pub use collect::{Collector, IndexedMessage};
pub use write::SessionUpdate;

/// Maximum length of a query, in bytes.
const QUERY_BYTES_LIMIT: usize = 16 * 1024;

/// The index of messages. Cheap to clone.
#[derive(Clone)]
pub struct MessageIndex {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    writer: Mutex<Writer>,
    embedder: Option<Arc<dyn Embedder>>,
    /// Notified when messages were added that have no vectors yet.
    added: Notify,
}

/// The connection that writes.
#[derive(Default)]
enum Writer {
    /// Nothing was written yet.
    #[default]
    Closed,
    Open(Connection),
    /// The index was deleted. A new one must not be written to before all sessions are read again.
    Damaged,
}

impl MessageIndex {
    /// An index in this file, which is created with the first write. With an embedder, messages are
    /// also ranked by meaning.
    pub fn new(path: PathBuf, embedder: Option<Arc<dyn Embedder>>) -> Self {
        let (writer, added) = (Mutex::default(), Notify::new());
        Self { shared: Arc::new(Shared { path, writer, embedder, added }) }
    }

    /// The time since which sessions may have changed without an update of the index; the epoch if
    /// unknown. Fails if the index can neither be read nor created.
    pub async fn since(&self) -> Result<Time, StorageError> {
        self.write(|db| write::since(db)).await
    }

    /// Stores the time for [`Self::since`]. Fails if the index cannot be written.
    pub async fn checkpoint(&self, since: Time) -> Result<(), StorageError> {
        self.write(move |db| write::checkpoint(db, since)).await
    }

    /// The event up to which a session is indexed; `None` if it is not. Fails if the index cannot be read.
    pub async fn position(&self, session: &SessionId) -> Result<Option<Seq>, StorageError> {
        let session = session.clone();
        self.write(move |db| write::position(db, &session)).await
    }

    /// Adds messages to a session and moves its position. Fails if the index cannot be written.
    pub async fn update(&self, update: SessionUpdate) -> Result<(), StorageError> {
        let added = !update.messages.is_empty();
        self.write(move |db| write::update(db, &update)).await?;
        if added {
            self.shared.added.notify_one();
        }
        Ok(())
    }

    /// Sessions that must be indexed again from their beginning, see [`Self::remove`]. Fails if the index
    /// cannot be read.
    pub async fn sessions_to_reindex(&self) -> Result<Vec<SessionId>, StorageError> {
        self.write(|db| write::sessions_to_reindex(db)).await
    }

    /// Removes a session. Its forks share its messages, which the index has once: the forks are
    /// emptied, so that they can be indexed again with all their messages. Returns the forks. Fails
    /// if the index cannot be written.
    pub async fn remove(&self, session: &SessionId) -> Result<Vec<SessionId>, StorageError> {
        if !self.shared.path.exists() {
            return Ok(Vec::new());
        }
        let session = session.clone();
        self.write(move |db| write::remove(db, &session)).await
    }

    /// Computes vectors of new messages until the future is dropped.
    pub async fn compute_vectors(&self) {
        match &self.shared.embedder {
            Some(embedder) => embed::run(self, &**embedder).await,
            None => std::future::pending().await,
        }
    }

    /// Runs a change on a blocking thread. A damaged index is deleted, so that the next start fills
    /// a new one.
    async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StorageError> {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let mut writer = shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
            if let Writer::Closed = *writer {
                *writer = Writer::Open(file::open(&shared.path).map_err(storage_error)?);
            }
            let Writer::Open(db) = &mut *writer else {
                let reason = "the search index was damaged; the next start builds it again";
                return Err(StorageError::Damaged(reason.into()));
            };
            let done = change(db).map_err(storage_error);
            if let Err(StorageError::Damaged(reason)) = &done {
                tracing::error!(
                    reason,
                    "deleted the damaged search index; the next start rebuilds it"
                );
                *writer = Writer::Damaged;
                file::delete(&shared.path);
            }
            done
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StorageError> {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let db = file::open_for_reading(&shared.path).map_err(storage_error)?;
            query(&db).map_err(storage_error)
        })
        .await
    }

    /// The vector of a query. Fails with the reason why messages are not ranked by meaning.
    async fn query_vector(&self, text: &str) -> Result<Vec<f32>, String> {
        let off = || SenseError::Off("embeddings").to_string();
        let embedder = self.shared.embedder.as_deref().ok_or_else(off)?;
        embedder.ready().map_err(|error| error.to_string())?;
        let space = embedder.space().version();
        let any = self.read(move |db| crate::vectors::any_of(db, &space)).await;
        if !any.map_err(|error| error.to_string())? {
            return Err("the messages have no vectors yet".to_owned());
        }
        embedding::query(embedder, text).await
    }
}

impl SessionSearch for MessageIndex {
    fn search(&self, query: SessionQuery) -> BoxFuture<'_, Result<SessionHits, SearchError>> {
        Box::pin(async move {
            if query.text.trim().is_empty() {
                return Err(SearchError::BadQuery("it is empty"));
            }
            if query.text.len() > QUERY_BYTES_LIMIT {
                return Err(SearchError::BadQuery("it is too long"));
            }
            let (vector, method) = match self.query_vector(&query.text).await {
                Ok(vector) => (Some(vector), SearchMethod::WordsAndMeaning),
                Err(reason) => (None, SearchMethod::Words { reason }),
            };
            let hits = self.read(move |db| find::find(db, &query, vector.as_deref())).await?;
            Ok(SessionHits { hits, method })
        })
    }
}

impl fmt::Debug for MessageIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageIndex").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StorageError::Unavailable(error.to_string())))
}

fn storage_error(error: rusqlite::Error) -> StorageError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StorageError::Damaged(error.to_string())
        }
        Some(_) | None => StorageError::Unavailable(error.to_string()),
    }
}
