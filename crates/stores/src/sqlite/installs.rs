//! The registered installs of front ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Install, Installs, StorageError};
use quintet_kernel::time::Time;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, params};

use super::open::BUSY_TIMEOUT;
use super::{SqliteStore, migrate, storage_error};

const COLUMNS: &str =
    "install_id, user_id, token_hash, created_at, last_seen_at, operating_system FROM installs";

impl Installs for SqliteStore {
    fn register(&self, install: Install) -> BoxFuture<'_, Result<(), StorageError>> {
        self.writer.change(self.epoch, move |db| insert(db, &install))
    }

    fn find_by_token(&self, token: &str) -> BoxFuture<'_, Result<Option<Install>, StorageError>> {
        let token = token.to_owned();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let query = format!("SELECT {COLUMNS} WHERE token_hash = ?1");
            let mut found = db.prepare_cached(&query).map_err(storage_error)?;
            found.query_row([token], read).optional().map_err(storage_error)
        }))
    }

    fn touch(&self, id: &str, at: Time) -> BoxFuture<'_, Result<(), StorageError>> {
        let id = id.to_owned();
        self.writer.change(self.epoch, move |db| {
            let query = "UPDATE installs SET last_seen_at = ?2 WHERE install_id = ?1";
            db.prepare_cached(query)?.execute(params![id, at.micros()])?;
            Ok(())
        })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Install>, StorageError>> {
        Box::pin(Arc::clone(&self.readers).run(|db| all(db).map_err(storage_error)))
    }

    fn revoke(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>> {
        let id = id.to_owned();
        self.writer.change(self.epoch, move |db| revoke(db, &id))
    }
}

fn insert(db: &Connection, install: &Install) -> rusqlite::Result<()> {
    let Install { id, user, token, created, seen, system } = install;
    let query = "INSERT INTO installs
        (install_id, user_id, token_hash, created_at, last_seen_at, operating_system)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = params![id, user, token, created.micros(), seen.micros(), system];
    db.prepare_cached(query)?.execute(row)?;
    Ok(())
}

fn all(db: &Connection) -> rusqlite::Result<Vec<Install>> {
    let query = format!("SELECT {COLUMNS} ORDER BY created_at, rowid");
    db.prepare_cached(&query)?.query_map([], read)?.collect()
}

fn revoke(db: &Connection, id: &str) -> rusqlite::Result<bool> {
    removed(db, "DELETE FROM installs WHERE install_id = ?1", [id])
}

/// True if a query deleted a row.
pub(super) fn removed(db: &Connection, query: &str, by: impl Params) -> rusqlite::Result<bool> {
    Ok(db.prepare_cached(query)?.execute(by)? > 0)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Install> {
    Ok(Install {
        id: row.get(0)?,
        user: row.get(1)?,
        token: row.get(2)?,
        created: Time::from_micros(row.get(3)?),
        seen: Time::from_micros(row.get(4)?),
        system: row.get(5)?,
    })
}

/// The table of installs, for administration from outside, also while a daemon runs: it does not
/// lock the data directory, and the daemon sees changes with the next request.
#[derive(Debug)]
pub struct InstallTable {
    path: PathBuf,
}

impl InstallTable {
    /// The table in a database; `None` if the file does not exist.
    pub fn of(path: &Path) -> Option<Self> {
        path.is_file().then(|| Self { path: path.into() })
    }

    /// All installs, oldest first.
    pub fn all(&self) -> Result<Vec<Install>, StorageError> {
        self.open()?.map_or(Ok(Vec::new()), |db| all(&db).map_err(storage_error))
    }

    /// Revokes an install; true if it existed. Durable when it returns.
    pub fn revoke(&self, id: &str) -> Result<bool, StorageError> {
        self.open()?.map_or(Ok(false), |db| revoke(&db, id).map_err(storage_error))
    }

    /// Opens the database; `None` if it is older than the table.
    fn open(&self) -> Result<Option<Connection>, StorageError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&self.path, flags).map_err(storage_error)?;
        db.busy_timeout(BUSY_TIMEOUT).map_err(storage_error)?;
        db.pragma_update(None, "synchronous", "FULL").map_err(storage_error)?;
        let version = migrate::version(&db).map_err(storage_error)?;
        migrate::check(&self.path, version)
            .map_err(|error| StorageError::Unavailable(error.to_string()))?;
        Ok((version >= migrate::INSTALLS).then_some(db))
    }
}
