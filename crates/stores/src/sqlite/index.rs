//! The session index.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Alias, BoxFuture, Lease, SessionIndex, StorageError};
use quintet_kernel::session_summary::SessionSummary;
use rusqlite::{Connection, Params};

use super::append::{self, SummaryRow};
use super::{SqliteStore, aliases, storage_error};

impl SessionIndex for SqliteStore {
    fn summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<SessionSummary>, StorageError>> {
        let id = session.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let query = "SELECT key, id, card FROM sessions WHERE id = ?1";
            let row = rows(db, query, [id.as_str()]).map_err(storage_error)?.pop();
            row.map(|row| row.summary(db)).transpose()
        }))
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        let query = "SELECT key, id, card FROM sessions ORDER BY created DESC, key DESC";
        Box::pin(Arc::clone(&self.readers).run(move |db| summaries(db, query, [], limit)))
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        // A path that is not UTF-8 matches no session: summaries are text.
        let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
        Box::pin(Arc::clone(&self.readers).run(move |db| match workspace {
            Some(workspace) => summaries(
                db,
                "SELECT key, id, card FROM sessions WHERE workspace = ?1
                 ORDER BY updated DESC, key DESC",
                [workspace],
                limit,
            ),
            None => summaries(
                db,
                "SELECT key, id, card FROM sessions ORDER BY updated DESC, key DESC",
                [],
                limit,
            ),
        }))
    }

    fn forks(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        let id = session.clone();
        let query = "SELECT key, id, card FROM forks JOIN sessions ON sessions.key = forks.child
            WHERE forks.parent = (SELECT key FROM sessions WHERE id = ?1) ORDER BY key";
        Box::pin(
            Arc::clone(&self.readers)
                .run(move |db| summaries(db, query, [id.as_str()], usize::MAX)),
        )
    }

    fn open(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        let query = "SELECT key, id, card FROM sessions WHERE open = 1 ORDER BY key";
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let rows = rows(db, query, []).map_err(storage_error)?;
            Ok(rows.iter().filter_map(|row| readable(row.session(), row)).collect())
        }))
    }

    fn update(
        &self,
        lease: &Lease,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        let (session, head) = (lease.session.clone(), summary.head);
        match SummaryRow::new(&summary) {
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
            let found = aliases::find(db, &alias).map_err(storage_error)?;
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

/// A row of the session index.
struct Row {
    key: i64,
    id: String,
    summary: Vec<u8>,
}

impl Row {
    /// Damaged text may not be UTF-8; only this session is affected.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let text = |n| Ok::<_, rusqlite::Error>(row.get_ref(n)?.as_bytes()?.to_vec());
        let id = String::from_utf8_lossy(&text(1)?).into_owned();
        Ok(Self { key: row.get(0)?, id, summary: text(2)? })
    }

    fn session(&self) -> Result<SessionId, StorageError> {
        SessionId::parse(&self.id).ok_or_else(|| self.damaged("its id"))
    }

    /// The summary with the head of the journal.
    fn summary(&self, db: &Connection) -> Result<SessionSummary, StorageError> {
        let mut summary: SessionSummary = serde_json::from_slice(&self.summary)
            .map_err(|error| self.damaged(&error.to_string()))?;
        let (head, at) = append::last(db, self.key).map_err(storage_error)?;
        summary.head = head;
        summary.updated = at.unwrap_or(summary.updated);
        Ok(summary)
    }

    fn damaged(&self, what: &str) -> StorageError {
        StorageError::Damaged(format!("the summary of session {}: {what}", self.id))
    }
}

fn rows(db: &Connection, query: &str, by: impl Params) -> rusqlite::Result<Vec<Row>> {
    db.prepare_cached(query)?.query_map(by, Row::read)?.collect()
}

/// The first readable summaries; an unreadable one is skipped and not counted.
fn summaries(
    db: &Connection,
    query: &str,
    by: impl Params,
    limit: usize,
) -> Result<Vec<SessionSummary>, StorageError> {
    let mut statement = db.prepare_cached(query).map_err(storage_error)?;
    let mut rows = statement.query(by).map_err(storage_error)?;
    let mut summaries = Vec::new();
    while summaries.len() < limit
        && let Some(row) = rows.next().map_err(storage_error)?
    {
        let row = Row::read(row).map_err(storage_error)?;
        summaries.extend(readable(row.summary(db), &row));
    }
    Ok(summaries)
}

fn readable<T>(found: Result<T, StorageError>, row: &Row) -> Option<T> {
    found.inspect_err(|error| tracing::error!(session = %row.id, %error, "skipped an unreadable session summary")).ok()
}
