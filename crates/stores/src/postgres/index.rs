//! The session index and the aliases of sessions.

use std::path::Path;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Alias, BoxFuture, Lease, SessionIndex, StorageError};
use quintet_kernel::session_summary::SessionSummary;
use quintet_kernel::time::Time;
use tokio_postgres::Row;

use super::append::SummaryRow;
use super::connection::{Lent, Values};
use super::writer::Group;
use super::{Store, from_sql, to_sql, trouble};

/// A session's summary with the head of its journal.
const CARDS: &str = "SELECT sessions.id, sessions.card, journals.head, journals.at
    FROM sessions JOIN journals ON journals.session = sessions.id";

impl SessionIndex for Store {
    fn summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<SessionSummary>, StorageError>> {
        let session = session.clone();
        self.pool.run(move |db| async move {
            let query = format!("{CARDS} WHERE sessions.id = $1");
            let row = db.row(&query, &[&session.as_str()]).await.map_err(trouble)?;
            row.as_ref().map(summary).transpose()
        })
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        self.pool.run(move |db| async move {
            let order = "ORDER BY sessions.created DESC, sessions.key DESC";
            summaries(&db, order, &[], limit).await
        })
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
        self.pool.run(move |db| async move {
            let order = "ORDER BY sessions.updated DESC, sessions.key DESC";
            match workspace {
                Some(workspace) => {
                    let there = format!("WHERE sessions.workspace = $1 {order}");
                    summaries(&db, &there, &[&workspace], limit).await
                }
                None => summaries(&db, order, &[], limit).await,
            }
        })
    }

    fn forks(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        let session = session.clone();
        self.pool.run(move |db| async move {
            let of = "JOIN forks ON forks.child = sessions.key
                WHERE forks.parent = (SELECT key FROM sessions WHERE id = $1)
                ORDER BY sessions.key";
            summaries(&db, of, &[&session.as_str()], usize::MAX).await
        })
    }

    fn open(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        self.pool.run(|db| async move {
            let query = "SELECT id FROM sessions WHERE open ORDER BY key";
            let rows = db.rows(query, &[]).await.map_err(trouble)?;
            let found = rows.iter().map(|row| row.get::<_, &str>(0));
            Ok(found.filter_map(SessionId::parse).collect())
        })
    }

    fn update(
        &self,
        lease: &Lease,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        let row = match SummaryRow::new(&summary) {
            Ok(row) => row,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let lease = lease.clone();
        self.queue.submit(vec![lease.session.clone()], async move |group: &mut Group| {
            Ok(match group.leased(&lease) {
                Ok(owned) if owned.begun && owned.head == summary.head => {
                    group.pending().summarize(owned.key, row.clone());
                    Ok(())
                }
                Ok(owned) => Err(StorageError::Conflict(owned.head)),
                Err(fenced) => Err(fenced),
            })
        })
    }

    fn alias(&self, alias: &Alias) -> BoxFuture<'_, Result<Option<SessionId>, StorageError>> {
        let alias = alias.clone();
        self.pool.run(move |db| async move {
            let row = db.row(ALIAS, &[&alias.space, &alias.name]).await.map_err(trouble)?;
            row.map(|row| session(row.get(0))).transpose()
        })
    }

    fn set_alias(
        &self,
        alias: &Alias,
        session: &SessionId,
        instead_of: Option<&SessionId>,
    ) -> BoxFuture<'_, Result<SessionId, StorageError>> {
        let Alias { space, name } = alias.clone();
        let (session, instead_of) = (session.clone(), instead_of.cloned());
        self.queue.submit(Vec::new(), async move |group: &mut Group| {
            let set = "INSERT INTO aliases (space, name, session) VALUES ($1, $2, $3)
                ON CONFLICT (space, name) DO UPDATE SET session = excluded.session
                WHERE aliases.session = $4 RETURNING session";
            let old = instead_of.as_ref().map(SessionId::as_str);
            loop {
                let values: Values<'_> = &[&space, &name, &session.as_str(), &old];
                if group.db().row(set, values).await?.is_some() {
                    return Ok(Ok(session.clone()));
                }
                // Another node may remove the alias between the two statements.
                if let Some(row) = group.db().row(ALIAS, &[&space, &name]).await? {
                    return Ok(self::session(row.get(0)));
                }
            }
        })
    }
}

impl Store {
    /// Lets any node own a session, wherever its workspace was before.
    ///
    /// # Errors
    /// Fails if the database cannot be written.
    pub async fn forget_homes(&self) -> Result<(), StorageError> {
        self.queue
            .change(async |group: &mut Group| {
                group.db().execute("UPDATE sessions SET home = ''", &[]).await.map(drop)
            })
            .await
    }
}

const ALIAS: &str = "SELECT session FROM aliases WHERE space = $1 AND name = $2";

fn session(id: &str) -> Result<SessionId, StorageError> {
    SessionId::parse(id).ok_or_else(|| StorageError::Damaged(format!("an alias of {id:?}")))
}

/// The first readable summaries. An unreadable one is skipped, so there may be fewer than
/// requested.
async fn summaries(
    db: &Lent,
    which: &str,
    values: Values<'_>,
    limit: usize,
) -> Result<Vec<SessionSummary>, StorageError> {
    let query = format!("{CARDS} {which} LIMIT ${}", values.len() + 1);
    let limit = to_sql(limit as u64);
    let values = [values, &[&limit]].concat();
    let rows = db.rows(&query, &values).await.map_err(trouble)?;
    let readable = |row: &Row| {
        let unreadable =
            |error: &StorageError| tracing::error!(%error, "skipped an unreadable session summary");
        summary(row).inspect_err(unreadable).ok()
    };
    Ok(rows.iter().filter_map(readable).collect())
}

fn summary(row: &Row) -> Result<SessionSummary, StorageError> {
    let (id, json): (&str, &str) = (row.get(0), row.get(1));
    let mut summary: SessionSummary = serde_json::from_str(json)
        .map_err(|error| StorageError::Damaged(format!("the summary of session {id}: {error}")))?;
    summary.head = from_sql(row.get(2));
    summary.updated = row.get::<_, Option<i64>>(3).map_or(summary.updated, Time::from_micros);
    Ok(summary)
}
