//! The index file: its tables, opening and deleting it.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::vectors;

const VERSION: i32 = 2;

/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Page cache of a connection, in KiB.
const CACHE_KIB: i64 = 512;

/// Bytes of a page. A message changes a page of every table and index, so small pages are cheap.
const PAGE_BYTES: u32 = 1024;

/// Bytes in the log after which it is checkpointed, and to which its file is truncated then.
const LOG_LIMIT: u32 = 4 * 1024 * 1024;

/// `sessions.seq` is the event up to which messages are indexed; 0 if they must be indexed again.
/// `secure-delete` removes the words of deleted messages from the file.
const SCHEMA: &str = "
    CREATE TABLE meta (since INTEGER NOT NULL);
    INSERT INTO meta (since) VALUES (0);
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, parent TEXT,
        seq INTEGER NOT NULL, title TEXT NOT NULL, workspace TEXT NOT NULL
    );
    CREATE INDEX forks ON sessions (parent) WHERE parent IS NOT NULL;
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, seq INTEGER NOT NULL,
        turn TEXT NOT NULL, message TEXT NOT NULL, role TEXT NOT NULL, at INTEGER NOT NULL,
        text TEXT NOT NULL
    );
    CREATE INDEX messages_of_session ON messages (session, seq);
    CREATE VIRTUAL TABLE words USING fts5 (
        body, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
    );
    INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
";

/// Opens the index for writing. Creates it if it does not exist, and again if it cannot be used.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    match prepared(path) {
        Err(error) if unusable(&error) => {
            tracing::warn!(%error, "rebuilding the search index of messages, because it cannot be used");
            delete(path);
            prepared(path)
        }
        opened => opened,
    }
}

/// Opens the index for reading, also while another process writes. Fails if it does not exist.
pub(super) fn open_for_reading(path: &Path) -> rusqlite::Result<Connection> {
    // After a crash, reading needs write access to recover the log.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.pragma_update(None, "cache_size", -CACHE_KIB)?;
    db.pragma_update(None, "query_only", true)?;
    match version(&db)? {
        VERSION => Ok(db),
        _ => Err(rusqlite::Error::InvalidPath(path.into())),
    }
}

/// Deletes the index.
pub(super) fn delete(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        let _not_there = std::fs::remove_file(with_suffix(path, end));
    }
}

fn prepared(path: &Path) -> rusqlite::Result<Connection> {
    // The file is private to this user. If it cannot be created, opening it reports that.
    let _unmade = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let db = Connection::open(path)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.pragma_update(None, "page_size", PAGE_BYTES)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // A power failure may lose the last changes, which are found again by their position.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "cache_size", -CACHE_KIB)?;
    let page: u32 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = LOG_LIMIT / page;
    db.query_row(&format!("PRAGMA wal_autocheckpoint = {pages}"), [], |_| Ok(()))?;
    db.query_row(&format!("PRAGMA journal_size_limit = {LOG_LIMIT}"), [], |_| Ok(()))?;
    // Deleted content is overwritten.
    db.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    match version(&db)? {
        VERSION => {}
        0 => {
            let vectors = vectors::SCHEMA;
            db.execute_batch(&format!(
                "BEGIN IMMEDIATE; {SCHEMA} {vectors} PRAGMA user_version = {VERSION}; COMMIT;"
            ))?;
        }
        _ => return Err(rusqlite::Error::InvalidQuery),
    }
    Ok(db)
}

fn version(db: &Connection) -> rusqlite::Result<i32> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// True if the file cannot be used as an index of this version.
fn unusable(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || matches!(error, rusqlite::Error::InvalidQuery)
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}
