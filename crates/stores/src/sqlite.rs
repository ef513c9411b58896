//! The journal, the session index and the data of front ends in one SQLite file.
//!
//! All writes go through one thread, which commits whatever was queued during the last commit.
//! Reads run next to it on their own connections and see what is committed.

use std::fmt;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{BoxFuture, Lease, Leases, StorageError};
use rusqlite::{Connection, ErrorCode};

use crate::Error;
use crate::data_dir::DirLock;
use health::WriteHealth;
use reader::Readers;
use writer::Writer;

mod aliases;
mod append;
mod artifacts;
mod contents;
mod erase;
mod fork;
mod header;
mod health;
mod index;
mod installs;
mod journal;
mod log_space;
mod migrate;
mod open;
mod preferences;
mod reader;
mod references;
mod runs;
mod snapshots;
mod writer;

pub use installs::InstallTable;

/// A store in a SQLite file. Dropping it finishes queued writes.
pub struct SqliteStore {
    readers: Arc<Readers>,
    writer: Writer,
    epoch: u64,
    write_health: Arc<WriteHealth>,
    _lock: Option<Arc<DirLock>>,
}

impl SqliteStore {
    /// Opens a database; creates it if it does not exist. Leases of earlier stores on it
    /// become invalid.
    ///
    /// Fails if the file is in use, damaged, newer or of another program; the file is not changed then.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (db, epoch) = open::open(path)?;
        Self::start(path, db, epoch)
    }

    /// Opens a database and deletes unreferenced blobs of a directory.
    pub(crate) fn open_and_collect(path: &Path, blobs: &Path) -> Result<Self, Error> {
        let (db, epoch) = open::open(path)?;
        // Unreferenced blobs do no harm; failing to open the store would.
        if let Err(error) = references::delete_unreferenced(&db, blobs) {
            tracing::warn!(%error, "could not delete unreferenced blobs");
        }
        Self::start(path, db, epoch)
    }

    fn start(path: &Path, db: Connection, epoch: u64) -> Result<Self, Error> {
        let write_health = Arc::new(WriteHealth::of(path));
        let writer = Writer::start(db, Arc::clone(&write_health)).map_err(Error::unusable(path))?;
        Ok(Self { readers: Arc::new(Readers::new(path)), writer, epoch, write_health, _lock: None })
    }

    /// Resolves when the writer thread has ended, so that the store can never write again.
    /// The daemon should exit then.
    pub fn writer_ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.writer.ended()
    }

    /// Holds a lock for as long as the store exists.
    pub(crate) fn holding(mut self, lock: Arc<DirLock>) -> Self {
        self._lock = Some(lock);
        self
    }
}

/// The writer's connection is closed last and truncates the write-ahead log.
impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.readers.close();
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Leases for SqliteStore {
    fn acquire(&self, session: &SessionId) -> BoxFuture<'_, Result<Lease, StorageError>> {
        Box::pin(ready(Ok(Lease { session: session.clone(), epoch: self.epoch })))
    }
}

/// The storage error for an error of SQLite.
fn storage_error(error: rusqlite::Error) -> StorageError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StorageError::Damaged(error.to_string())
        }
        Some(_) | None => StorageError::Unavailable(error.to_string()),
    }
}

/// A number as SQLite stores it. No number exceeds the range.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that SQLite stored.
fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
