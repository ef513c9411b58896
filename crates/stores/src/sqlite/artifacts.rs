//! The list of files that front ends uploaded, and the sessions that refer to them.

use std::sync::Arc;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Artifact, Artifacts, BoxFuture, StorageError};
use quintet_kernel::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::installs::removed;
use super::{SqliteStore, from_sql, storage_error, to_sql};

const COLUMNS: &str = "id, owner, mime, size, sha256, created FROM artifacts";
const UNCLAIMED: &str = "NOT EXISTS (SELECT 1 FROM claims WHERE artifact = artifacts.id)";

impl Artifacts for SqliteStore {
    fn add(&self, artifact: Artifact) -> BoxFuture<'_, Result<(), StorageError>> {
        self.writer.change(self.epoch, move |db| insert(db, &artifact))
    }

    fn artifact(&self, id: &str) -> BoxFuture<'_, Result<Option<Artifact>, StorageError>> {
        let id = id.to_owned();
        Box::pin(Arc::clone(&self.readers).run(move |db| find(db, &id).map_err(storage_error)))
    }

    fn claim(&self, id: &str, session: &SessionId) -> BoxFuture<'_, Result<bool, StorageError>> {
        let (id, session) = (id.to_owned(), session.clone());
        self.writer.change(self.epoch, move |db| {
            if find(db, &id)?.is_none() {
                return Ok(false);
            }
            let query = "INSERT OR IGNORE INTO claims (artifact, session) VALUES (?1, ?2)";
            db.prepare_cached(query)?.execute([id.as_str(), session.as_str()])?;
            Ok(true)
        })
    }

    fn unclaimed(&self, before: Time) -> BoxFuture<'_, Result<Vec<Artifact>, StorageError>> {
        Box::pin(
            Arc::clone(&self.readers).run(move |db| unclaimed(db, before).map_err(storage_error)),
        )
    }

    fn discard(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>> {
        let id = id.to_owned();
        self.writer.change(self.epoch, move |db| {
            let query = format!("DELETE FROM artifacts WHERE id = ?1 AND {UNCLAIMED}");
            removed(db, &query, [&id])
        })
    }
}

fn insert(db: &Connection, artifact: &Artifact) -> rusqlite::Result<()> {
    let Artifact { id, owner, mime, size, sha256, created } = artifact;
    let query = "INSERT INTO artifacts (id, owner, mime, size, sha256, created)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = params![id, owner, mime, to_sql(*size), sha256, created.micros()];
    db.prepare_cached(query)?.execute(row)?;
    Ok(())
}

fn find(db: &Connection, id: &str) -> rusqlite::Result<Option<Artifact>> {
    let query = format!("SELECT {COLUMNS} WHERE id = ?1");
    db.prepare_cached(&query)?.query_row([id], read).optional()
}

fn unclaimed(db: &Connection, before: Time) -> rusqlite::Result<Vec<Artifact>> {
    let query = format!("SELECT {COLUMNS} WHERE created < ?1 AND {UNCLAIMED} ORDER BY created, id");
    db.prepare_cached(&query)?.query_map([before.micros()], read)?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Artifact> {
    Ok(Artifact {
        id: row.get(0)?,
        owner: row.get(1)?,
        mime: row.get(2)?,
        size: from_sql(row.get(3)?),
        sha256: row.get(4)?,
        created: Time::from_micros(row.get(5)?),
    })
}
