//! The index of a workspace's memory: an SQLite file that may be lost.
//!
//! It is opened for each search and brought up to date first. One that is damaged, or of another
//! version, is deleted and built again; where there is no place for one, it is built in memory.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::memory::Error;
use rusqlite::{Connection, ErrorCode};

use crate::vectors;

pub(crate) mod find;
pub(crate) mod update;

const VERSION: i32 = 2;

/// `digest` tells whether a passage and the headings above it are those that a vector was made of.
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

/// Where the index of one workspace is.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    /// Two searches of this process need not do the same work.
    turn: Mutex<()>,
}

impl Index {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, turn: Mutex::new(()) }
    }

    /// Does something with the index only if it can be kept. Fails if it cannot.
    pub(crate) fn on_disk<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.open().and_then(|mut db| work(&mut db));
        done.map_err(|error| Error::Storage(format!("index: {error}")))
    }

    /// Does something with the index.
    pub(crate) fn with<T>(
        &self,
        work: impl Fn(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let on_disk = || self.open().and_then(|mut db| work(&mut db));
        on_disk()
            .or_else(|error| {
                if passes(&error) {
                    return Err(error);
                }
                tracing::warn!(%error, "the index of memory is built again");
                self.delete();
                on_disk()
            })
            .or_else(|error| {
                tracing::warn!(%error, "the index of memory cannot be kept");
                work(&mut prepared(Connection::open_in_memory()?)?)
            })
            .map_err(|error| Error::Storage(format!("index: {error}")))
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        if let Some(folder) = self.path.parent() {
            // Where this fails, opening the file will say so.
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
            let _not_there = std::fs::remove_file(with_end(&self.path, end));
        }
    }
}

/// True if nothing is wrong with the index itself: its vectors are not thrown away because a disk is full.
fn passes(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull))
}

fn with_end(path: &Path, end: &str) -> PathBuf {
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
