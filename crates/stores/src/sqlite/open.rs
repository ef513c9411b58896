//! Opens or creates a database. A file that cannot be used is never changed.
//!
//! A new database is created under another name and renamed when it is complete, so a partial
//! one is never found.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::header::{self, APPLICATION_ID, FileState};
use super::{append, migrate};
use crate::Error;

/// How long to wait for a lock that another program holds, such as a backup.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of a page. Each commit writes one page for every changed table and index, however small
/// the change, so small pages are cheap. Databases of earlier versions have pages of 4096 bytes.
const PAGE_BYTES: u32 = 1024;
/// Bytes in the log before its pages are moved to the database, and how many of them its file keeps then:
/// a burst does not keep its room.
pub(super) const LOG_BYTES: u32 = 4 * 1024 * 1024;

/// Opens a database for writing and starts a new epoch.
pub(super) fn open(path: &Path) -> Result<(Connection, u64), Error> {
    if header::inspect(path)? == FileState::Missing {
        create(path)?;
    }
    let mut db = connect(path).map_err(sqlite(path))?;
    let version = migrate::version(&db).map_err(sqlite(path))?;
    migrate::check(path, version)?;
    probe(&db, version).map_err(sqlite(path))?;
    let epoch = prepare(&mut db).map_err(sqlite(path))?;
    Ok((db, epoch))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    // Until the database is known to be valid, not even closing it may change the file.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(db)
}

/// Reads a little of each table, because damage should be found before anything is written.
/// Damage in other pages is found when they are read.
fn probe(db: &Connection, version: u32) -> rusqlite::Result<()> {
    let mut queries = vec!["SELECT count(*) FROM sqlite_schema"];
    if version > 0 {
        queries.extend([
            "SELECT epoch FROM meta",
            "SELECT max(id) FROM sessions",
            "SELECT max(created) FROM sessions",
            "SELECT count(*) FROM sessions WHERE open = 1",
            "SELECT (SELECT card FROM sessions ORDER BY key DESC LIMIT 1)",
            "SELECT (SELECT body FROM events ORDER BY rowid DESC LIMIT 1)",
        ]);
    }
    queries.iter().try_for_each(|query| db.query_row(query, [], |_| Ok(())))
}

fn prepare(db: &mut Connection) -> rusqlite::Result<u64> {
    use_log(db)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // Replaced and deleted values are overwritten, also on free pages.
    db.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    let page: u32 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = LOG_BYTES / page;
    db.query_row(&format!("PRAGMA wal_autocheckpoint = {pages}"), [], |_| Ok(()))?;
    db.query_row(&format!("PRAGMA journal_size_limit = {LOG_BYTES}"), [], |_| Ok(()))?;
    migrate::migrate(db)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    next_epoch(db)
}

/// Rewrites the whole database, so that nothing of replaced or deleted rows remains in its
/// files. No other writer may be active.
pub(super) fn vacuum(path: &Path) -> rusqlite::Result<()> {
    let db = connect(path)?;
    db.execute_batch("VACUUM")?;
    let busy = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))?;
    let in_use = || rusqlite::Error::InvalidPath("the log is in use".into());
    (!busy).then_some(()).ok_or_else(in_use)
}

fn next_epoch(db: &mut Connection) -> rusqlite::Result<u64> {
    let bump = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    bump.execute("UPDATE meta SET epoch = epoch + 1", [])?;
    let epoch = append::epoch(&bump)?;
    bump.commit()?;
    Ok(epoch)
}

/// Switches to write-ahead logging. Fails on file systems without shared memory.
fn use_log(db: &Connection) -> rusqlite::Result<()> {
    let mode =
        db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
    let refused = || rusqlite::Error::InvalidPath("no write-ahead log is possible here".into());
    (mode == "wal").then_some(()).ok_or_else(refused)
}

fn create(path: &Path) -> Result<(), Error> {
    refuse_leftovers(path)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix("new-").suffix(".db").tempfile_in(dir);
    let file = file.map_err(Error::unusable(path))?;
    label(file.path()).map_err(sqlite(path))?;
    match file.persist_noclobber(path) {
        Err(failed) if failed.error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::unusable(path)(failed.error))
        }
        // Another process created the file in the meantime, which is fine.
        Ok(_) | Err(_) => {
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::unusable(path))
        }
    }
}

fn label(path: &Path) -> rusqlite::Result<()> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "page_size", PAGE_BYTES)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // Replaced and deleted values are overwritten, also on free pages.
    db.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    use_log(&db)?;
    db.close().map_err(|(_, error)| error)
}

/// Fails if a log file exists without its database: SQLite would replay it into the new one.
fn refuse_leftovers(path: &Path) -> Result<(), Error> {
    for ending in ["-wal", "-journal"] {
        let log = beside(path, ending);
        if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            let reason = format!("it is gone, but {} is there", log.display());
            return Err(Error::Damaged { path: path.into(), reason });
        }
    }
    Ok(())
}

/// The file of SQLite beside a database with this ending.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// For `map_err`: the error for a failure of SQLite while opening `path`.
fn sqlite(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => Error::NotADatabase(path.into()),
        Some(ErrorCode::DatabaseCorrupt) => {
            Error::Damaged { path: path.into(), reason: error.to_string() }
        }
        Some(_) | None => Error::unusable(path)(error),
    }
}
