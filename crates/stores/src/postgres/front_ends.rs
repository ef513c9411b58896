//! Data of front ends other than sessions: installs, settings and the list of their files.

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{
    Artifact, Artifacts, BoxFuture, Install, Installs, Preferences, StorageError,
};
use quintet_kernel::time::Time;
use serde_json::Value;
use tokio_postgres::Row;

use super::connection::Values;
use super::writer::Group;
use super::{Store, from_sql, to_sql, trouble};

const INSTALLS: &str = "SELECT id, owner, token, created, seen, system FROM installs";
const ARTIFACTS: &str = "SELECT id, owner, mime, size, sha256, created FROM artifacts";
const UNCLAIMED: &str = "NOT EXISTS (SELECT 1 FROM claims WHERE artifact = artifacts.id)";

impl Installs for Store {
    fn register(&self, install: Install) -> BoxFuture<'_, Result<(), StorageError>> {
        self.queue.change(async move |group: &mut Group| {
            let Install { id, user, token, created, seen, system } = &install;
            let insert = "INSERT INTO installs (id, owner, token, created, seen, system)
                VALUES ($1, $2, $3, $4, $5, $6)";
            let (created, seen) = (created.micros(), seen.micros());
            let values: Values<'_> = &[id, user, token, &created, &seen, system];
            group.db().execute(insert, values).await.map(drop)
        })
    }

    fn find_by_token(&self, token: &str) -> BoxFuture<'_, Result<Option<Install>, StorageError>> {
        let token = token.to_owned();
        self.pool.run(move |db| async move {
            let query = format!("{INSTALLS} WHERE token = $1");
            Ok(db.row(&query, &[&token]).await.map_err(trouble)?.as_ref().map(install))
        })
    }

    fn touch(&self, id: &str, at: Time) -> BoxFuture<'_, Result<(), StorageError>> {
        let id = id.to_owned();
        self.queue.change(async move |group: &mut Group| {
            let update = "UPDATE installs SET seen = $2 WHERE id = $1";
            group.db().execute(update, &[&id, &at.micros()]).await.map(drop)
        })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Install>, StorageError>> {
        self.pool.run(|db| async move {
            let query = format!("{INSTALLS} ORDER BY created, key");
            Ok(db.rows(&query, &[]).await.map_err(trouble)?.iter().map(install).collect())
        })
    }

    fn revoke(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>> {
        let id = id.to_owned();
        self.queue.change(async move |group: &mut Group| {
            Ok(group.db().execute("DELETE FROM installs WHERE id = $1", &[&id]).await? > 0)
        })
    }
}

fn install(row: &Row) -> Install {
    Install {
        id: row.get(0),
        user: row.get(1),
        token: row.get(2),
        created: Time::from_micros(row.get(3)),
        seen: Time::from_micros(row.get(4)),
        system: row.get(5),
    }
}

impl Preferences for Store {
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        self.pool.run(move |db| async move {
            let query = "SELECT value FROM preferences WHERE space = $1 AND name = $2";
            let row = db.row(query, &[&space, &name]).await.map_err(trouble)?;
            row.map(|row| serde_json::from_str(row.get(0))).transpose().map_err(|error| {
                StorageError::Damaged(format!("the settings {space} {name}: {error}"))
            })
        })
    }

    fn names(&self, space: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        let space = space.to_owned();
        self.pool.run(move |db| async move {
            let query = "SELECT name FROM preferences WHERE space = $1 ORDER BY name";
            let rows = db.rows(query, &[&space]).await.map_err(trouble)?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn set_preference(
        &self,
        space: &str,
        name: &str,
        value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        let value = (!value.is_null()).then(|| value.to_string());
        self.queue.change(async move |group: &mut Group| {
            let done = match &value {
                Some(value) => {
                    let set = "INSERT INTO preferences (space, name, value) VALUES ($1, $2, $3)
                        ON CONFLICT (space, name) DO UPDATE SET value = excluded.value";
                    group.db().execute(set, &[&space, &name, value]).await
                }
                None => {
                    let delete = "DELETE FROM preferences WHERE space = $1 AND name = $2";
                    group.db().execute(delete, &[&space, &name]).await
                }
            };
            done.map(drop)
        })
    }

    fn replace(
        &self,
        space: &str,
        name: &str,
        expected: Option<Value>,
        value: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let (space, name, value) = (space.to_owned(), name.to_owned(), value.to_string());
        self.queue.change(async move |group: &mut Group| {
            let db = group.db();
            let query = "SELECT value FROM preferences WHERE space = $1 AND name = $2 FOR UPDATE";
            let found = db.row(query, &[&space, &name]).await?;
            let found =
                found.map(|row| serde_json::from_str::<Value>(row.get(0)).unwrap_or_default());
            if found != expected {
                return Ok(false);
            }
            // Another node may write the first value at the same time.
            let set = match found {
                Some(_) => "UPDATE preferences SET value = $3 WHERE space = $1 AND name = $2",
                None => {
                    "INSERT INTO preferences (space, name, value) VALUES ($1, $2, $3)
                    ON CONFLICT DO NOTHING"
                }
            };
            Ok(db.execute(set, &[&space, &name, &value]).await? > 0)
        })
    }
}

impl Artifacts for Store {
    fn add(&self, artifact: Artifact) -> BoxFuture<'_, Result<(), StorageError>> {
        self.queue.change(async move |group: &mut Group| {
            let Artifact { id, owner, mime, size, sha256, created } = &artifact;
            let insert = "INSERT INTO artifacts (id, owner, mime, size, sha256, created)
                VALUES ($1, $2, $3, $4, $5, $6)";
            let (size, created) = (to_sql(*size), created.micros());
            let values: Values<'_> = &[id, owner, mime, &size, sha256, &created];
            group.db().execute(insert, values).await.map(drop)
        })
    }

    fn artifact(&self, id: &str) -> BoxFuture<'_, Result<Option<Artifact>, StorageError>> {
        let id = id.to_owned();
        self.pool.run(move |db| async move {
            let query = format!("{ARTIFACTS} WHERE id = $1");
            Ok(db.row(&query, &[&id]).await.map_err(trouble)?.as_ref().map(artifact))
        })
    }

    fn claim(&self, id: &str, session: &SessionId) -> BoxFuture<'_, Result<bool, StorageError>> {
        let (id, session) = (id.to_owned(), session.clone());
        self.queue.change(async move |group: &mut Group| {
            if group.db().row(LOCK_ARTIFACT, &[&id]).await?.is_none() {
                return Ok(false);
            }
            let insert = "INSERT INTO claims (artifact, session) VALUES ($1, $2)
                ON CONFLICT DO NOTHING";
            group.db().execute(insert, &[&id, &session.as_str()]).await?;
            Ok(true)
        })
    }

    fn unclaimed(&self, before: Time) -> BoxFuture<'_, Result<Vec<Artifact>, StorageError>> {
        self.pool.run(move |db| async move {
            let query =
                format!("{ARTIFACTS} WHERE created < $1 AND {UNCLAIMED} ORDER BY created, id");
            let rows = db.rows(&query, &[&before.micros()]).await.map_err(trouble)?;
            Ok(rows.iter().map(artifact).collect())
        })
    }

    fn discard(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>> {
        let id = id.to_owned();
        self.queue.change(async move |group: &mut Group| {
            // The next statement sees a claim that another node makes at the same time.
            if group.db().row(LOCK_ARTIFACT, &[&id]).await?.is_none() {
                return Ok(false);
            }
            let delete = format!("DELETE FROM artifacts WHERE id = $1 AND {UNCLAIMED}");
            Ok(group.db().execute(&delete, &[&id]).await? > 0)
        })
    }
}

/// Serializes claims and discards of one artifact.
const LOCK_ARTIFACT: &str = "SELECT 1 FROM artifacts WHERE id = $1 FOR UPDATE";

pub(super) fn artifact(row: &Row) -> Artifact {
    Artifact {
        id: row.get(0),
        owner: row.get(1),
        mime: row.get(2),
        size: from_sql(row.get(3)),
        sha256: row.get(4),
        created: Time::from_micros(row.get(5)),
    }
}
