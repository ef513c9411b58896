//! The journal: appends go to the writer, reads to a reader.

use std::future::ready;
use std::sync::Arc;

use quintet_kernel::codec;
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Batch, BoxFuture, Journal, Lease, Page, Snapshot, StorageError};
use quintet_kernel::session_summary;
use quintet_kernel::time::Time;
use rusqlite::{Connection, Row};

use super::append::{self, Append, place};
use super::fork::{self, Fork};
use super::{SqliteStore, erase, from_sql, snapshots, storage_error, to_sql};

impl Journal for SqliteStore {
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        match Append::new(&lease.session, expected, &batch) {
            Ok(append) => self.writer.submit(lease.epoch, move |db| append.apply(db)),
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
        let session = lease.session.clone();
        self.writer.change(lease.epoch, move |db| erase::erase(db, &session))
    }

    fn fork(
        &self,
        lease: &Lease,
        from: &session_summary::Fork,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        match Fork::new(&lease.session, from, &batch) {
            Ok(fork) => self.writer.submit(lease.epoch, move |db| fork.apply(db)),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>> {
        let session = session.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let found = append::find(db, &session).map_err(storage_error)?;
            Ok(found.map(|(_, head)| head))
        }))
    }

    fn snapshot(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Snapshot>, StorageError>> {
        let session = session.clone();
        Box::pin(
            Arc::clone(&self.readers)
                .run(move |db| snapshots::find(db, &session).map_err(storage_error)),
        )
    }

    fn keep_snapshot(
        &self,
        lease: &Lease,
        snapshot: Snapshot,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        let session = lease.session.clone();
        self.writer.change(lease.epoch, move |db| snapshots::keep(db, &session, &snapshot))
    }
}

fn read(
    db: &Connection,
    session: &SessionId,
    after: Seq,
    page: Page,
) -> Result<Vec<Record>, StorageError> {
    let events = load(db, session, after, page).map_err(storage_error)?;
    let numbered = events.into_iter().zip(after.saturating_add(1)..);
    numbered.map(|(event, seq)| event.record(session, seq)).collect()
}

/// A stored event.
struct StoredEvent {
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
) -> rusqlite::Result<Vec<StoredEvent>> {
    let Some((key, _)) = append::find(db, session)? else { return Ok(Vec::new()) };
    let mut reading = PageReader { after, page, bytes: 0, events: Vec::new() };
    for (owner, upto) in spans(db, key, after)? {
        if !reading.read(db, owner, upto)? {
            break;
        }
    }
    Ok(reading.events)
}

/// The sessions whose events make up a session after a number, each with its last event: ancestors,
/// oldest first, and the session itself.
fn spans(db: &Connection, key: i64, after: Seq) -> rusqlite::Result<Vec<(i64, Seq)>> {
    let mut spans = vec![(key, Seq::MAX)];
    let mut key = key;
    while let Some((parent, base)) = fork::base(db, key)?.filter(|(_, base)| *base > after) {
        spans.push((parent, base));
        key = parent;
    }
    spans.reverse();
    Ok(spans)
}

/// A page that is being filled.
struct PageReader {
    after: Seq,
    page: Page,
    bytes: usize,
    events: Vec<StoredEvent>,
}

impl PageReader {
    /// Reads events of one session; true if the page has room for more.
    fn read(&mut self, db: &Connection, owner: i64, upto: Seq) -> rusqlite::Result<bool> {
        let mut query = db.prepare_cached(
            "SELECT place & 0xffffffff, at, format, body FROM events
             WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
        )?;
        let room = to_sql((self.page.events - self.events.len()) as u64);
        let mut rows = query.query([place(owner, self.after), place(owner, upto), room])?;
        while let Some(row) = rows.next()? {
            let event = StoredEvent::from_row(row)?;
            self.bytes += event.body.len();
            if self.bytes > self.page.bytes && !self.events.is_empty() {
                return Ok(false);
            }
            self.after = event.seq;
            self.events.push(event);
        }
        Ok(self.events.len() < self.page.events)
    }
}

impl StoredEvent {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: from_sql(row.get(0)?),
            at: row.get(1)?,
            format: row.get(2)?,
            body: row.get(3)?,
        })
    }

    /// Decodes an event that must have this number: a gap is an error.
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
