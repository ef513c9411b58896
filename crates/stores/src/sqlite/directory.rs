//! The list of sessions.

use std::sync::Arc;

use quintet_kernel::card::Card;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Alias, BoxFuture, Directory, StorageError};
use rusqlite::{Connection, Params};

use super::naming::{self, Naming};
use super::{Store, to_sql, trouble};

impl Directory for Store {
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        Box::pin(Arc::clone(&self.readers).run(move |db| list(db, limit)))
    }

    fn open(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        Box::pin(Arc::clone(&self.readers).run(open))
    }

    fn alias(&self, alias: &Alias) -> BoxFuture<'_, Result<Option<SessionId>, StorageError>> {
        let alias = alias.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let found = naming::find(db, &alias).map_err(trouble)?;
            found.map(|id| SessionId::parse(&id).ok_or_else(|| damaged(&id))).transpose()
        }))
    }

    fn set_alias(
        &self,
        alias: &Alias,
        session: &SessionId,
        instead_of: Option<&SessionId>,
    ) -> BoxFuture<'_, Result<SessionId, StorageError>> {
        let naming = Naming {
            alias: alias.clone(),
            session: session.clone(),
            instead_of: instead_of.cloned(),
            epoch: self.epoch,
        };
        self.writer.name(naming)
    }
}

fn list(db: &Connection, limit: usize) -> Result<Vec<Card>, StorageError> {
    let query = "SELECT card FROM sessions ORDER BY created DESC, key DESC LIMIT ?1";
    cards(db, query, [to_sql(limit as u64)])
}

/// Reads cards.
pub(super) fn cards(
    db: &Connection,
    query: &str,
    by: impl Params,
) -> Result<Vec<Card>, StorageError> {
    let cards = texts(db, query, by).map_err(trouble)?;
    let read = |json: &String| serde_json::from_str(json);
    cards.iter().map(read).collect::<Result<_, _>>().map_err(|error| damaged(&error.to_string()))
}

fn open(db: &Connection) -> Result<Vec<SessionId>, StorageError> {
    let query = "SELECT id FROM sessions WHERE open = 1 ORDER BY key";
    let ids = texts(db, query, []).map_err(trouble)?;
    ids.iter().map(|id| SessionId::parse(id).ok_or_else(|| damaged(id))).collect()
}

fn texts(db: &Connection, query: &str, params: impl Params) -> rusqlite::Result<Vec<String>> {
    db.prepare_cached(query)?.query_map(params, |row| row.get(0))?.collect()
}

fn damaged(what: &str) -> StorageError {
    StorageError::Damaged(format!("the list of sessions: {what}"))
}
