//! Settings of front ends.

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Preferences, StorageError};
use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;

use super::{SqliteStore, open, storage_error};
use crate::blobs::blocking;

impl Preferences for SqliteStore {
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let text = find(db, &space, &name).map_err(storage_error)?;
            text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| {
                StorageError::Damaged(format!("the settings {space} {name}: {error}"))
            })
        }))
    }

    fn names(&self, space: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        let space = space.to_owned();
        Box::pin(Arc::clone(&self.readers).run(move |db| names(db, &space).map_err(storage_error)))
    }

    fn set_preference(
        &self,
        space: &str,
        name: &str,
        value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        let value = (!value.is_null()).then(|| value.to_string());
        self.writer.change(self.epoch, move |db| set(db, [&space, &name], value.as_deref()))
    }

    fn replace(
        &self,
        space: &str,
        name: &str,
        expected: Option<Value>,
        value: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let (space, name, value) = (space.to_owned(), name.to_owned(), value.to_string());
        self.writer.change(self.epoch, move |db| {
            let found = find(db, &space, &name)?;
            let found = found.map(|text| serde_json::from_str::<Value>(&text).unwrap_or_default());
            if found != expected {
                return Ok(false);
            }
            set(db, [&space, &name], Some(&value))?;
            Ok(true)
        })
    }
}

impl SqliteStore {
    /// Rewrites the database, so that replaced values leave no trace in its files. Fails if another process uses
    /// it at the same time.
    pub async fn vacuum(&self) -> Result<(), StorageError> {
        let path = self.readers.path().to_owned();
        blocking(move || open::vacuum(&path).map_err(storage_error)).await
    }
}

fn find(db: &Connection, space: &str, name: &str) -> rusqlite::Result<Option<String>> {
    db.prepare_cached("SELECT value FROM preferences WHERE space = ?1 AND name = ?2")?
        .query_row([space, name], |row| row.get(0))
        .optional()
}

fn names(db: &Connection, space: &str) -> rusqlite::Result<Vec<String>> {
    db.prepare_cached("SELECT name FROM preferences WHERE space = ?1")?
        .query_map([space], |row| row.get(0))?
        .collect()
}

/// Sets or deletes the value of a name. Must run in a transaction.
pub(super) fn set(db: &Connection, of: [&str; 2], value: Option<&str>) -> rusqlite::Result<()> {
    let [space, name] = of;
    match value {
        Some(value) => db
            .prepare_cached(
                "INSERT OR REPLACE INTO preferences (space, name, value) VALUES (?1, ?2, ?3)",
            )?
            .execute([space, name, value])?,
        None => db
            .prepare_cached("DELETE FROM preferences WHERE space = ?1 AND name = ?2")?
            .execute([space, name])?,
    };
    Ok(())
}
