//! The index of a workspace's memory: an SQLite file that may be deleted at any time.
//!
//! The index is opened for each search and updated first. A file that is damaged, or of another
//! version, is deleted and rebuilt; if no file can be written, the index is built in memory.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::memory::MemoryError;
use rusqlite::{Connection, ErrorCode};

use crate::vectors;

pub(crate) mod find;
pub(crate) mod update;

const VERSION: i32 = 2;

/// `digest` identifies the passage and headings that a vector was computed from.
const SCHEMA: &str = "
    CREATE TABLE files (
        path TEXT PRIMARY KEY, print TEXT NOT NULL, digest BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL, kind TEXT NOT NULL, day TEXT NOT NULL,
        line_start INTEGER NOT NULL, line_end INTEGER NOT NULL, text TEXT NOT NULL,
        headings TEXT NOT NULL, digest BLOB NOT NULL
    );
    CREATE INDEX passages_of_file ON passages (path);
    CREATE VIRTUAL TABLE words USING fts5 (
        body, headings, content = '', contentless_delete = 1,
        tokenize = 'porter unicode61 remove_diacritics 2'
    );
";

/// The index of one workspace.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    /// Held during a search, so that two searches of this process do not update the index twice.
    lock: Mutex<()>,
}

impl Index {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, lock: Mutex::new(()) }
    }

    /// Runs a function on the index file. Fails if the file cannot be used.
    pub(crate) fn on_disk<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, MemoryError> {
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.open().and_then(|mut db| work(&mut db));
        done.map_err(|error| MemoryError::Storage(format!("index: {error}")))
    }

    /// Runs a function on the index, in memory if the file cannot be used.
    pub(crate) fn with<T>(
        &self,
        work: impl Fn(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, MemoryError> {
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let on_disk = || self.open().and_then(|mut db| work(&mut db));
        on_disk()
            .or_else(|error| {
                if is_environment_error(&error) {
                    return Err(error);
                }
                tracing::warn!(%error, "rebuilding the search index of notes, because it cannot be used");
                self.delete();
                on_disk()
            })
            .or_else(|error| {
                tracing::warn!(%error, "could not store the search index of notes; it is built in memory for this search");
                work(&mut prepared(Connection::open_in_memory()?)?)
            })
            .map_err(|error| MemoryError::Storage(format!("index: {error}")))
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        if let Some(folder) = self.path.parent() {
            // If this fails, opening the file reports it.
            let _unmade = std::fs::create_dir_all(folder);
        }
        let db = Connection::open(&self.path)?;
        db.busy_timeout(Duration::from_secs(5))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "NORMAL")?;
        prepared(db)
    }

    fn delete(&self) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let _not_there = std::fs::remove_file(with_suffix(&self.path, end));
        }
    }
}

/// True if the index itself is intact (a full disk, a locked file), so that it is not deleted.
fn is_environment_error(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull))
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn prepared(db: Connection) -> rusqlite::Result<Connection> {
    match db.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))? {
        VERSION => Ok(db),
        0 => {
            let vectors = vectors::SCHEMA;
            db.execute_batch(&format!(
                "BEGIN IMMEDIATE; {SCHEMA} {vectors} PRAGMA user_version = {VERSION}; COMMIT;"
            ))?;
            Ok(db)
        }
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}
