//! The list of sessions.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::card::Card;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Alias, BoxFuture, Lease, SessionIndex, StorageError};
use rusqlite::{Connection, Params};

use super::append::{self, Summary};
use super::{Store, aliases, trouble};

impl SessionIndex for Store {
    fn card(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Card>, StorageError>> {
        let id = session.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let query = "SELECT key, id, card FROM sessions WHERE id = ?1";
            let row = rows(db, query, [id.as_str()]).map_err(trouble)?.pop();
            row.map(|row| row.card(db)).transpose()
        }))
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        let query = "SELECT key, id, card FROM sessions ORDER BY created DESC, key DESC";
        Box::pin(Arc::clone(&self.readers).run(move |db| cards(db, query, [], limit)))
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        // What is no text is no card's workspace either: cards are text.
        let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
        Box::pin(Arc::clone(&self.readers).run(move |db| match workspace {
            Some(workspace) => cards(
                db,
                "SELECT key, id, card FROM sessions WHERE workspace = ?1
                 ORDER BY updated DESC, key DESC",
                [workspace],
                limit,
            ),
            None => cards(
                db,
                "SELECT key, id, card FROM sessions ORDER BY updated DESC, key DESC",
                [],
                limit,
            ),
        }))
    }

    fn forks(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        let id = session.clone();
        let query = "SELECT key, id, card FROM forks JOIN sessions ON sessions.key = forks.child
            WHERE forks.parent = (SELECT key FROM sessions WHERE id = ?1) ORDER BY key";
        Box::pin(
            Arc::clone(&self.readers).run(move |db| cards(db, query, [id.as_str()], usize::MAX)),
        )
    }

    fn open(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        let query = "SELECT key, id, card FROM sessions WHERE open = 1 ORDER BY key";
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let rows = rows(db, query, []).map_err(trouble)?;
            Ok(rows.iter().filter_map(|row| readable(row.session(), row)).collect())
        }))
    }

    fn update(&self, lease: &Lease, card: Card) -> BoxFuture<'static, Result<(), StorageError>> {
        let (session, head) = (lease.session.clone(), card.head);
        match Summary::new(&card) {
            Ok(summary) => {
                self.writer.submit(lease.epoch, move |db| match append::find(db, &session)? {
                    Some((key, found)) if found == head => summary.update(db, key).map(Ok),
                    found => Ok(Err(StorageError::Conflict(found.map_or(0, |(_, head)| head)))),
                })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn alias(&self, alias: &Alias) -> BoxFuture<'_, Result<Option<SessionId>, StorageError>> {
        let alias = alias.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let found = aliases::find(db, &alias).map_err(trouble)?;
            found.map(|id| aliases::session(&id)).transpose()
        }))
    }

    fn set_alias(
        &self,
        alias: &Alias,
        session: &SessionId,
        instead_of: Option<&SessionId>,
    ) -> BoxFuture<'_, Result<SessionId, StorageError>> {
        let (alias, session) = (alias.clone(), session.clone());
        let instead_of = instead_of.cloned();
        self.writer
            .submit(self.epoch, move |db| aliases::set(db, &alias, &session, instead_of.as_ref()))
    }
}

/// A session as the list has it.
struct Row {
    key: i64,
    id: String,
    card: Vec<u8>,
}

impl Row {
    /// Text that is damaged may be no UTF-8; that is this session's trouble and no other's.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let text = |n| Ok::<_, rusqlite::Error>(row.get_ref(n)?.as_bytes()?.to_vec());
        let id = String::from_utf8_lossy(&text(1)?).into_owned();
        Ok(Self { key: row.get(0)?, id, card: text(2)? })
    }

    fn session(&self) -> Result<SessionId, StorageError> {
        SessionId::parse(&self.id).ok_or_else(|| self.damaged("its id"))
    }

    /// What the list has, up to the last event.
    fn card(&self, db: &Connection) -> Result<Card, StorageError> {
        let mut card: Card =
            serde_json::from_slice(&self.card).map_err(|error| self.damaged(&error.to_string()))?;
        let (head, at) = append::last(db, self.key).map_err(trouble)?;
        card.head = head;
        card.updated = at.unwrap_or(card.updated);
        Ok(card)
    }

    fn damaged(&self, what: &str) -> StorageError {
        StorageError::Damaged(format!("the summary of session {}: {what}", self.id))
    }
}

fn rows(db: &Connection, query: &str, by: impl Params) -> rusqlite::Result<Vec<Row>> {
    db.prepare_cached(query)?.query_map(by, Row::read)?.collect()
}

/// The first sessions that can be read; one that cannot hides no other, nor counts as one.
fn cards(
    db: &Connection,
    query: &str,
    by: impl Params,
    limit: usize,
) -> Result<Vec<Card>, StorageError> {
    let mut statement = db.prepare_cached(query).map_err(trouble)?;
    let mut rows = statement.query(by).map_err(trouble)?;
    let mut cards = Vec::new();
    while cards.len() < limit
        && let Some(row) = rows.next().map_err(trouble)?
    {
        let row = Row::read(row).map_err(trouble)?;
        cards.extend(readable(row.card(db), &row));
    }
    Ok(cards)
}

fn readable<T>(found: Result<T, StorageError>, row: &Row) -> Option<T> {
    found.inspect_err(|error| tracing::error!(session = %row.id, %error, "left out")).ok()
}
