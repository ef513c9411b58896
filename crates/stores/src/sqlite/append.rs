//! One append: ready to be written, and how it is.

use quintet_kernel::codec;
use quintet_kernel::event::Seq;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Batch, Lease, StorageError};
use rusqlite::{Connection, OptionalExtension, params};

use super::{from_sql, references, to_sql};

/// What became of an append.
pub(super) type Verdict = Result<Seq, StorageError>;

/// An append, encoded.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) lease: Lease,
    pub(super) expected: Seq,
    at: i64,
    pub(super) bodies: Vec<Vec<u8>>,
    card: Row,
}

/// What the list of sessions keeps.
#[derive(Debug)]
struct Row {
    created: i64,
    updated: i64,
    open: bool,
    json: String,
}

impl Append {
    /// Encodes an append; on the caller's thread, because the writer's is everybody's.
    pub(super) fn new(lease: &Lease, expected: Seq, batch: &Batch) -> Result<Self, StorageError> {
        let json = serde_json::to_string(&batch.card)
            .map_err(|error| StorageError::Unavailable(format!("card: {error}")))?;
        let card = Row {
            created: batch.card.created.micros(),
            updated: batch.card.updated.micros(),
            open: batch.card.open,
            json,
        };
        let bodies = batch.records.iter().map(|record| codec::encode(&record.event)).collect();
        Ok(Self { lease: lease.clone(), expected, at: batch.at.micros(), bodies, card })
    }

    /// Judges an append and, if it may be, writes it. Must run in a transaction, which is to be
    /// rolled back if this fails; a verdict against it has changed nothing.
    pub(super) fn apply(&self, db: &Connection, epoch: u64) -> rusqlite::Result<Verdict> {
        if self.lease.epoch != epoch {
            return Ok(Err(StorageError::Fenced));
        }
        let found = find(db, &self.lease.session)?;
        let head = found.map_or(0, |(_, head)| head);
        if head != self.expected {
            return Ok(Err(StorageError::Conflict(head)));
        }
        let head = head + self.bodies.len() as Seq;
        let key = match found {
            Some((key, _)) => self.update(db, key, head)?,
            None => self.insert(db, head)?,
        };
        self.write_events(db, key)?;
        Ok(Ok(head))
    }

    /// Events may outlive their session, for its forks: their key is not given away again.
    pub(super) fn insert(&self, db: &Connection, head: Seq) -> rusqlite::Result<i64> {
        db.prepare_cached(
            "INSERT INTO sessions (key, id, created, updated, head, open, card)
             VALUES (
                 1 + max(
                     coalesce((SELECT max(key) FROM sessions), 0),
                     coalesce((SELECT max(session) FROM events), 0)
                 ),
                 ?1, ?2, ?3, ?4, ?5, ?6
             )",
        )?
        .insert(params![
            self.lease.session.as_str(),
            self.card.created,
            self.card.updated,
            to_sql(head),
            self.card.open,
            self.card.json
        ])
    }

    fn update(&self, db: &Connection, key: i64, head: Seq) -> rusqlite::Result<i64> {
        db.prepare_cached(
            "UPDATE sessions SET updated = ?2, head = ?3, open = ?4, card = ?5 WHERE key = ?1",
        )?
        .execute(params![
            key,
            self.card.updated,
            to_sql(head),
            self.card.open,
            self.card.json
        ])?;
        Ok(key)
    }

    pub(super) fn write_events(&self, db: &Connection, key: i64) -> rusqlite::Result<()> {
        let mut insert = db.prepare_cached(
            "INSERT INTO events (session, seq, at, format, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for (body, seq) in self.bodies.iter().zip(self.expected + 1..) {
            insert.execute(params![key, to_sql(seq), self.at, codec::VERSION, body])?;
            references::note(db, key, seq, body)?;
        }
        Ok(())
    }
}

/// The epoch that may write.
pub(super) fn epoch(db: &Connection) -> rusqlite::Result<u64> {
    db.prepare_cached("SELECT epoch FROM meta")?.query_row([], |row| row.get(0)).map(from_sql)
}

/// The key and the head of a session.
pub(super) fn find(db: &Connection, id: &SessionId) -> rusqlite::Result<Option<(i64, Seq)>> {
    db.prepare_cached("SELECT key, head FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, from_sql(row.get(1)?))))
        .optional()
}
