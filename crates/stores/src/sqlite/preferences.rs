//! Front ends' own settings.

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Preferences, StorageError};
use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;

use super::{Store, trouble};

impl Preferences for Store {
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let text = find(db, &space, &name).map_err(trouble)?;
            text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| {
                StorageError::Damaged(format!("the settings {space} {name}: {error}"))
            })
        }))
    }

    fn prefer(
        &self,
        space: &str,
        name: &str,
        value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let (space, name, value) = (space.to_owned(), name.to_owned(), value.to_string());
        self.writer.change(self.epoch, move |db| {
            let query =
                "INSERT OR REPLACE INTO preferences (space, name, value) VALUES (?1, ?2, ?3)";
            db.prepare_cached(query)?.execute([&space, &name, &value])?;
            Ok(())
        })
    }
}

fn find(db: &Connection, space: &str, name: &str) -> rusqlite::Result<Option<String>> {
    db.prepare_cached("SELECT value FROM preferences WHERE space = ?1 AND name = ?2")?
        .query_row([space, name], |row| row.get(0))
        .optional()
}
