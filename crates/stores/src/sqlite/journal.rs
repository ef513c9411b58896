//! The journal: appends go to the writer, reads to a reader.

use std::future::ready;
use std::sync::Arc;

use quintet_kernel::codec;
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Batch, BoxFuture, Journal, Lease, Page, StorageError};
use quintet_kernel::time::Time;
use rusqlite::{Connection, Row, params};

use super::append::{self, Append};
use super::erase::Erase;
use super::{Store, from_sql, to_sql, trouble};

impl Journal for Store {
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        match Append::new(lease, expected, &batch) {
            Ok(append) => self.writer.submit(append),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Record>, StorageError>> {
        let session = session.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| read(db, &session, after, page)))
    }

    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>> {
        let erased = self.writer.submit(Erase::new(lease));
        Box::pin(async { erased.await.map(|_| ()) })
    }

    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>> {
        let session = session.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let found = append::find(db, &session).map_err(trouble)?;
            Ok(found.map(|(_, head)| head))
        }))
    }
}

fn read(
    db: &Connection,
    session: &SessionId,
    after: Seq,
    page: Page,
) -> Result<Vec<Record>, StorageError> {
    let events = load(db, session, after, page).map_err(trouble)?;
    let numbered = events.into_iter().zip(after.saturating_add(1)..);
    numbered.map(|(event, seq)| event.record(session, seq)).collect()
}

/// An event as it is kept.
struct Kept {
    seq: Seq,
    at: i64,
    format: u16,
    body: Vec<u8>,
}

fn load(
    db: &Connection,
    session: &SessionId,
    after: Seq,
    page: Page,
) -> rusqlite::Result<Vec<Kept>> {
    let mut query = db.prepare_cached(
        "SELECT seq, at, format, body FROM events
         WHERE session = (SELECT key FROM sessions WHERE id = ?1) AND seq > ?2
         ORDER BY seq LIMIT ?3",
    )?;
    let mut rows =
        query.query(params![session.as_str(), to_sql(after), to_sql(page.events as u64)])?;
    let mut events = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let event = Kept::from_row(row)?;
        bytes += event.body.len();
        if bytes > page.bytes && !events.is_empty() {
            break;
        }
        events.push(event);
    }
    Ok(events)
}

impl Kept {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: from_sql(row.get(0)?),
            at: row.get(1)?,
            format: row.get(2)?,
            body: row.get(3)?,
        })
    }

    /// Decodes an event that must have this number: a hole is never passed over in silence.
    fn record(self, session: &SessionId, seq: Seq) -> Result<Record, StorageError> {
        let damaged =
            |why: String| StorageError::Damaged(format!("event {seq} of {session}: {why}"));
        if self.seq != seq {
            return Err(damaged("it is not there".into()));
        }
        let event =
            codec::decode(self.format, &self.body).map_err(|error| damaged(error.to_string()))?;
        Ok(Record { seq, at: Time::from_micros(self.at), event })
    }
}
