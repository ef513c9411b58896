//! Lists everything that ports can only look up by name, to copy a whole store.

use std::sync::Arc;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Alias, Artifact, BoxFuture, StorageError};
use quintet_kernel::time::Time;
use rusqlite::Connection;

use super::{SqliteStore, from_sql, storage_error};
use crate::transfer::{Contents, ReferencedArtifact, Setting};

impl Contents for SqliteStore {
    fn aliases(&self) -> BoxFuture<'_, Result<Vec<(Alias, SessionId)>, StorageError>> {
        Box::pin(Arc::clone(&self.readers).run(|db| {
            let rows = texts(db, "SELECT space, name, session FROM aliases")?;
            let alias = |[space, name, session]: [String; 3]| {
                Some((Alias { space, name }, SessionId::parse(&session)?))
            };
            Ok(rows.into_iter().filter_map(alias).collect())
        }))
    }

    fn settings(&self) -> BoxFuture<'_, Result<Vec<Setting>, StorageError>> {
        Box::pin(Arc::clone(&self.readers).run(|db| {
            let rows = texts(db, "SELECT space, name, value FROM preferences")?;
            let setting = |[space, name, value]: [String; 3]| {
                let value = serde_json::from_str(&value).map_err(|error| {
                    StorageError::Damaged(format!("the settings {space} {name}: {error}"))
                });
                Ok((space, name, value?))
            };
            rows.into_iter().map(setting).collect()
        }))
    }

    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<ReferencedArtifact>, StorageError>> {
        Box::pin(Arc::clone(&self.readers).run(|db| {
            let claims = texts(db, "SELECT artifact, session, '' FROM claims ORDER BY session")?;
            let claimed = |id: &str| {
                let of = claims.iter().filter(|[artifact, _, _]| artifact == id);
                of.filter_map(|[_, session, _]| SessionId::parse(session)).collect()
            };
            let artifacts = artifacts(db).map_err(storage_error)?;
            Ok(artifacts.into_iter().map(|it| (it.clone(), claimed(&it.id))).collect())
        }))
    }
}

fn texts(db: &Connection, query: &str) -> Result<Vec<[String; 3]>, StorageError> {
    let mut query = db.prepare_cached(query).map_err(storage_error)?;
    let rows = query.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]));
    rows.and_then(Iterator::collect).map_err(storage_error)
}

fn artifacts(db: &Connection) -> rusqlite::Result<Vec<Artifact>> {
    let query = "SELECT id, owner, mime, size, sha256, created FROM artifacts ORDER BY id";
    let artifact = |row: &rusqlite::Row<'_>| {
        Ok(Artifact {
            id: row.get(0)?,
            owner: row.get(1)?,
            mime: row.get(2)?,
            size: from_sql(row.get(3)?),
            sha256: row.get(4)?,
            created: Time::from_micros(row.get(5)?),
        })
    };
    db.prepare_cached(query)?.query_map([], artifact)?.collect()
}
