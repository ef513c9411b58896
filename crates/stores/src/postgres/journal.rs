//! The journal: changes go to the writer, reads to the pool.

use std::future::ready;

use quintet_kernel::codec;
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Batch, BoxFuture, Journal, Lease, Page, Snapshot, StorageError, Wakes};
use quintet_kernel::session_summary;
use quintet_kernel::time::Time;
use tokio_postgres::{Error, Row};

use super::append::Append;
use super::connection::Connection;
use super::wakes::Subscription;
use super::writer::Group;
use super::{Store, erase, fork, from_sql, to_sql, trouble};

impl Journal for Store {
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        let append = match Append::new(expected, &batch) {
            Ok(append) => append,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let lease = lease.clone();
        self.queue.submit(vec![lease.session.clone()], async move |group: &mut Group| {
            let row = match group.leased(&lease) {
                Ok(row) => row,
                Err(fenced) => return Ok(Err(fenced)),
            };
            if row.head != append.expected {
                return Ok(Err(StorageError::Conflict(row.head)));
            }
            group.append(&lease.session, &append);
            Ok(Ok(append.head()))
        })
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Record>, StorageError>> {
        let session = session.clone();
        self.pool.run(move |db| async move {
            let events = load(&db, &session, after, page).await.map_err(trouble)?;
            let numbered = events.iter().zip(after.saturating_add(1)..);
            numbered.map(|(row, seq)| record(row, &session, seq)).collect()
        })
    }

    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>> {
        let session = session.clone();
        self.pool.run(move |db| async move {
            let query = "SELECT head FROM journals WHERE session = $1 AND begun";
            let row = db.row(query, &[&session.as_str()]).await.map_err(trouble)?;
            Ok(row.map(|row| from_sql(row.get(0))))
        })
    }

    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>> {
        let lease = lease.clone();
        self.queue.submit(vec![lease.session.clone()], async move |group: &mut Group| {
            match group.leased(&lease) {
                Ok(row) => erase::erase(group, &lease.session, &row).await.map(Ok),
                Err(fenced) => Ok(Err(fenced)),
            }
        })
    }

    fn fork(
        &self,
        lease: &Lease,
        from: &session_summary::Fork,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        let first = match Append::first(from.at, &batch) {
            Ok(append) => append,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let (lease, from) = (lease.clone(), from.clone());
        let sessions = vec![lease.session.clone(), from.parent.clone()];
        self.queue.submit(sessions, async move |group: &mut Group| {
            fork::fork(group, &lease, &from, &first).await
        })
    }

    fn snapshot(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Snapshot>, StorageError>> {
        let session = session.clone();
        self.pool.run(move |db| async move {
            let query = "WITH RECURSIVE line (key, upto, depth) AS (
                    SELECT key, 9223372036854775807, 0 FROM sessions WHERE id = $1
                    UNION ALL SELECT parent, least(base, upto), depth + 1
                        FROM line JOIN forks ON forks.child = line.key
                )
                SELECT seq, format, body FROM line
                JOIN snapshots ON snapshots.session = line.key AND seq <= upto
                ORDER BY depth LIMIT 1";
            let row = db.row(query, &[&session.as_str()]).await.map_err(trouble)?;
            let kept = |row: Row| Snapshot {
                seq: from_sql(row.get(0)),
                format: row.get(1),
                body: row.get(2),
            };
            Ok(row.map(kept))
        })
    }

    fn keep_snapshot(
        &self,
        lease: &Lease,
        snapshot: Snapshot,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        let lease = lease.clone();
        self.queue.submit(vec![lease.session.clone()], async move |group: &mut Group| {
            let row = match group.leased(&lease) {
                Ok(row) => row,
                Err(fenced) => return Ok(Err(fenced)),
            };
            if row.begun && snapshot.seq <= row.head {
                let Snapshot { seq, format, body } = &snapshot;
                let keep = "INSERT INTO snapshots (session, seq, format, body)
                    VALUES ($1, $2, $3, $4)
                    ON CONFLICT (session) DO UPDATE SET
                        seq = excluded.seq, format = excluded.format, body = excluded.body";
                group.db().execute(keep, &[&row.key, &to_sql(*seq), format, body]).await?;
            }
            Ok(Ok(()))
        })
    }

    fn wakes(&self) -> Option<Box<dyn Wakes>> {
        Some(Box::new(Subscription(self.notices.subscribe())))
    }
}

/// Events of one session in order, as many as fit: `$4` at most, and `$5` bytes beyond the first.
const EVENTS: &str = "SELECT seq, at, format, body, total FROM (
        SELECT seq, at, format, body, row_number() OVER (ORDER BY seq) AS number,
            (sum(octet_length(body)) OVER (ORDER BY seq))::bigint AS total
        FROM events WHERE session = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4
    ) AS page WHERE total <= $5 OR number = 1 AND $6 ORDER BY seq";

async fn load(
    db: &Connection,
    session: &SessionId,
    after: Seq,
    page: Page,
) -> Result<Vec<Row>, Error> {
    let query = "SELECT key FROM journals WHERE session = $1 AND begun";
    let Some(row) = db.row(query, &[&session.as_str()]).await? else { return Ok(Vec::new()) };
    let mut after = to_sql(after);
    let mut room = to_sql(page.bytes as u64);
    let mut events: Vec<Row> = Vec::new();
    for (owner, upto) in spans(db, row.get(0), after).await? {
        let most = to_sql((page.events - events.len()) as u64);
        let first = events.is_empty();
        let found = db.rows(EVENTS, &[&owner, &after, &upto, &most, &room, &first]).await?;
        let Some(last) = found.last() else { break };
        (after, room) = (last.get(0), room - last.get::<_, i64>(4));
        events.extend(found);
        if after < upto {
            break;
        }
    }
    Ok(events)
}

/// The sessions whose events make up a session after a number, each with its last event: ancestors,
/// oldest first, and the session itself.
async fn spans(db: &Connection, key: i64, after: i64) -> Result<Vec<(i64, i64)>, Error> {
    let query = "WITH RECURSIVE line (key, upto, depth) AS (
            SELECT $1::bigint, 9223372036854775807, 0
            UNION ALL SELECT parent, base, depth + 1
                FROM line JOIN forks ON forks.child = line.key WHERE base > $2
        )
        SELECT key, upto FROM line ORDER BY depth DESC";
    let rows = db.rows(query, &[&key, &after]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Decodes an event that must have this number: a gap is an error.
fn record(row: &Row, session: &SessionId, seq: Seq) -> Result<Record, StorageError> {
    let damaged = |why: String| StorageError::Damaged(format!("event {seq} of {session}: {why}"));
    if from_sql(row.get(0)) != seq {
        return Err(damaged("it is not there".into()));
    }
    let (format, body): (i16, &[u8]) = (row.get(2), row.get(3));
    let event =
        codec::decode(format.cast_unsigned(), body).map_err(|error| damaged(error.to_string()))?;
    Ok(Record { seq, at: Time::from_micros(row.get(1)), event })
}
