//! The journal and the list of sessions in one SQLite file.
//!
//! All writes go through one thread that commits whatever was queued while the last commit ran;
//! reads run beside it on connections of their own and see what is committed.

use std::fmt;
use std::fs::File;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{BoxFuture, Lease, Leases, StorageError};
use rusqlite::{Connection, ErrorCode};

use crate::Error;
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
mod migrate;
mod open;
mod preferences;
mod reader;
mod references;
mod runs;
mod snapshots;
mod writer;

pub use installs::InstallTable;

/// A store in a SQLite file. Dropping it finishes what is queued.
pub struct SqliteStore {
    readers: Arc<Readers>,
    writer: Writer,
    epoch: u64,
    write_health: Arc<WriteHealth>,
    _lock: Option<Arc<File>>,
}

impl SqliteStore {
    /// Opens a database; creates it if it is not there.
    ///
    /// A file that cannot be used is left as it is. Leases of earlier stores on it are void.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (db, epoch) = open::open(path)?;
        Self::start(path, db, epoch)
    }

    /// The same; deletes the blobs of a directory that nobody refers to any more, or never did.
    pub(crate) fn open_and_collect(path: &Path, blobs: &Path) -> Result<Self, Error> {
        let (db, epoch) = open::open(path)?;
        // What is left lying about does no harm; that sessions cannot be read would.
        if let Err(error) = references::delete_unreferenced(&db, blobs) {
            tracing::warn!(%error, "content that nobody needs cannot be looked for");
        }
        Self::start(path, db, epoch)
    }

    fn start(path: &Path, db: Connection, epoch: u64) -> Result<Self, Error> {
        let write_health = Arc::new(WriteHealth::of(path));
        let writer = Writer::start(db, Arc::clone(&write_health)).map_err(Error::unusable(path))?;
        Ok(Self { readers: Arc::new(Readers::new(path)), writer, epoch, write_health, _lock: None })
    }

    /// Resolves when the store cannot write any more, ever: the thread that writes is gone. Whoever
    /// runs the store should end then and say so.
    pub fn writer_ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.writer.ended()
    }

    /// Keeps a lock for as long as the store writes.
    pub(crate) fn holding(mut self, lock: Arc<File>) -> Self {
        self._lock = Some(lock);
        self
    }
}

/// The writer's connection closes last of all and tidies up the log.
impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.readers.close();
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Leases for SqliteStore {
    fn acquire(&self, session: &SessionId) -> BoxFuture<'_, Result<Lease, StorageError>> {
        Box::pin(ready(Ok(Lease { session: session.clone(), epoch: self.epoch })))
    }
}

/// What trouble with SQLite means for a caller.
fn storage_error(error: rusqlite::Error) -> StorageError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StorageError::Damaged(error.to_string())
        }
        Some(_) | None => StorageError::Unavailable(error.to_string()),
    }
}

/// A number as SQLite keeps it. Nothing is ever numbered beyond what fits.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that SQLite kept.
fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
