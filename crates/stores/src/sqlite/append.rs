//! Encodes an append and writes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use quintet_kernel::codec;
use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::id::{BlobId, SessionId};
use quintet_kernel::port::{Batch, StorageError};
use quintet_kernel::session_summary::SessionSummary;
use quintet_kernel::time::Time;
use rusqlite::{Connection, OptionalExtension, params};

use super::writer::WriteResult;
use super::{fork, from_sql, references};

/// An append, encoded.
#[derive(Debug)]
pub(super) struct Append {
    session: SessionId,
    expected: Seq,
    events: Vec<EncodedEvent>,
    /// The new summary row; `None` if it does not change.
    summary: Option<SummaryRow>,
}

/// An event, encoded.
#[derive(Debug)]
struct EncodedEvent {
    at: i64,
    body: Vec<u8>,
    blobs: BTreeSet<BlobId>,
}

/// The row of a session in the session index.
#[derive(Debug)]
pub(super) struct SummaryRow {
    created: i64,
    updated: i64,
    open: bool,
    workspace: String,
    json: String,
}

impl Append {
    /// Encodes an append; on the caller's thread, because all sessions share the writer's.
    pub(super) fn new(
        session: &SessionId,
        expected: Seq,
        batch: &Batch,
    ) -> Result<Self, StorageError> {
        let is_text =
            batch.records.iter().all(|record| matches!(record.event, Event::TextAppended { .. }));
        let begins = expected == 0 || batch.records.is_empty();
        let summary =
            if is_text && !begins { None } else { Some(SummaryRow::new(&batch.summary)?) };
        Ok(Self::encode(session, expected, batch, summary))
    }

    /// Encodes the first append to a session that begins after an event of another one.
    pub(super) fn first(
        session: &SessionId,
        after: Seq,
        batch: &Batch,
    ) -> Result<Self, StorageError> {
        Ok(Self::encode(session, after, batch, Some(SummaryRow::new(&batch.summary)?)))
    }

    fn encode(
        session: &SessionId,
        expected: Seq,
        batch: &Batch,
        summary: Option<SummaryRow>,
    ) -> Self {
        let encoded = |record: &Arc<Record>| EncodedEvent {
            at: record.at.micros(),
            body: codec::encode(&record.event),
            blobs: record.event.blobs().into_iter().cloned().collect(),
        };
        let events = batch.records.iter().map(encoded).collect();
        Self { session: session.clone(), expected, events, summary }
    }

    /// The head after the append.
    pub(super) fn head(&self) -> Seq {
        self.expected + self.events.len() as Seq
    }

    /// Checks an append and, if it is valid, writes it. A refusal has changed nothing.
    pub(super) fn apply(&self, db: &Connection) -> rusqlite::Result<WriteResult<Seq>> {
        let found = find(db, &self.session)?;
        let head = found.map_or(0, |(_, head)| head);
        if head != self.expected {
            return Ok(Err(StorageError::Conflict(head)));
        }
        match found {
            Some((key, _)) => {
                self.summary.iter().try_for_each(|summary| summary.update(db, key))?;
                self.write_events(db, key)?;
            }
            None => {
                self.insert(db)?;
            }
        }
        Ok(Ok(self.head()))
    }

    /// Creates a session with these events; returns its key. The events may outlive their session,
    /// because forks share them, so the key is never reused.
    pub(super) fn insert(&self, db: &Connection) -> rusqlite::Result<i64> {
        let summary = self.summary.as_ref().expect("a session begins with more than text");
        let key = db
            .prepare_cached(
                "INSERT INTO sessions (key, id, created, updated, open, workspace, card)
                 VALUES (
                     1 + max(
                         coalesce((SELECT max(key) FROM sessions), 0),
                         coalesce((SELECT max(place) >> 32 FROM events), 0)
                     ),
                     ?1, ?2, ?3, ?4, ?5, ?6
                 )",
            )?
            .insert(params![
                self.session.as_str(),
                summary.created,
                summary.updated,
                summary.open,
                summary.workspace,
                summary.json
            ])?;
        self.write_events(db, key)?;
        Ok(key)
    }

    fn write_events(&self, db: &Connection, key: i64) -> rusqlite::Result<()> {
        let mut insert = db.prepare_cached(
            "INSERT INTO events (place, at, format, body) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (event, seq) in self.events.iter().zip(self.expected + 1..) {
            insert.execute(params![place(key, seq), event.at, codec::VERSION, event.body])?;
            references::add_references(db, key, seq, &event.blobs)?;
        }
        Ok(())
    }
}

impl SummaryRow {
    pub(super) fn new(summary: &SessionSummary) -> Result<Self, StorageError> {
        let json = serde_json::to_string(summary)
            .map_err(|error| StorageError::Unavailable(format!("card: {error}")))?;
        Ok(Self {
            created: summary.created.micros(),
            updated: summary.updated.micros(),
            open: summary.open,
            workspace: summary.workspace.to_string_lossy().into_owned(),
            json,
        })
    }

    pub(super) fn update(&self, db: &Connection, key: i64) -> rusqlite::Result<()> {
        db.prepare_cached(
            "UPDATE sessions SET updated = ?2, open = ?3, workspace = ?4, card = ?5 WHERE key = ?1",
        )?
        .execute(params![key, self.updated, self.open, self.workspace, self.json])?;
        Ok(())
    }
}

/// The key of an event: the key of its session, then its number. So the events of a session are
/// adjacent, and appending text changes one page and no index.
pub(super) fn place(session: i64, seq: Seq) -> i64 {
    session << 32 | i64::from(u32::try_from(seq).unwrap_or(u32::MAX))
}

/// The epoch that may write.
pub(super) fn epoch(db: &Connection) -> rusqlite::Result<u64> {
    db.prepare_cached("SELECT epoch FROM meta")?.query_row([], |row| row.get(0)).map(from_sql)
}

/// The key and the head of a session.
pub(super) fn find(db: &Connection, id: &SessionId) -> rusqlite::Result<Option<(i64, Seq)>> {
    let key = db
        .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    key.map(|key| Ok((key, last(db, key)?.0))).transpose()
}

/// The last event of a session and its time.
pub(super) fn last(db: &Connection, key: i64) -> rusqlite::Result<(Seq, Option<Time>)> {
    let own = db
        .prepare_cached(
            "SELECT place & 0xffffffff, at FROM events
             WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC LIMIT 1",
        )?
        .query_row([place(key, 0), place(key, Seq::MAX)], |row| {
            Ok((from_sql(row.get(0)?), Some(Time::from_micros(row.get(1)?))))
        })
        .optional()?;
    match own {
        Some(own) => Ok(own),
        None => Ok((fork::base(db, key)?.map_or(0, |(_, base)| base), None)),
    }
}
