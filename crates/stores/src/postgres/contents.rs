//! Lists everything that ports can only look up by name, to copy a whole store.

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Alias, BoxFuture, StorageError};
use tokio_postgres::Row;

use super::front_ends::artifact;
use super::{Store, trouble};
use crate::transfer::{Contents, ReferencedArtifact, Setting};

impl Contents for Store {
    fn aliases(&self) -> BoxFuture<'_, Result<Vec<(Alias, SessionId)>, StorageError>> {
        self.pool.run(|db| async move {
            let rows = db.rows("SELECT space, name, session FROM aliases", &[]).await;
            let alias = |row: &Row| {
                let alias = Alias { space: row.get(0), name: row.get(1) };
                Some((alias, SessionId::parse(row.get(2))?))
            };
            Ok(rows.map_err(trouble)?.iter().filter_map(alias).collect())
        })
    }

    fn settings(&self) -> BoxFuture<'_, Result<Vec<Setting>, StorageError>> {
        self.pool.run(|db| async move {
            let rows = db.rows("SELECT space, name, value FROM preferences", &[]).await;
            let setting = |row: &Row| {
                let (space, name): (String, String) = (row.get(0), row.get(1));
                let value = serde_json::from_str(row.get(2)).map_err(|error| {
                    StorageError::Damaged(format!("the settings {space} {name}: {error}"))
                });
                Ok((space, name, value?))
            };
            rows.map_err(trouble)?.iter().map(setting).collect()
        })
    }

    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<ReferencedArtifact>, StorageError>> {
        self.pool.run(|db| async move {
            let query = "SELECT id, owner, mime, size, sha256, created, ARRAY(
                    SELECT session FROM claims WHERE artifact = artifacts.id
                    ORDER BY session COLLATE \"C\")
                FROM artifacts ORDER BY id COLLATE \"C\"";
            let rows = db.rows(query, &[]).await.map_err(trouble)?;
            let claimed = |row: &Row| {
                let sessions: Vec<&str> = row.get(6);
                sessions.into_iter().filter_map(SessionId::parse).collect()
            };
            Ok(rows.iter().map(|row| (artifact(row), claimed(row))).collect())
        })
    }
}
