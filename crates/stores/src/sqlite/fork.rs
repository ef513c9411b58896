//! A session that begins with the history of another one: a pointer and its first events.

use quintet_kernel::card;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{Batch, Lease, StorageError};
use rusqlite::{Connection, OptionalExtension, params};

use super::append::{self, Append, Verdict};
use super::{from_sql, to_sql};

/// A fork, encoded.
#[derive(Debug)]
pub(super) struct Fork {
    from: card::Fork,
    first: Append,
}

impl Fork {
    /// Encodes a fork and what is appended to it.
    pub(super) fn new(
        lease: &Lease,
        from: &card::Fork,
        batch: &Batch,
    ) -> Result<Self, StorageError> {
        Ok(Self { from: from.clone(), first: Append::new(lease, from.at, batch)? })
    }

    /// Judges it and, if it may be, writes it. Must run in a transaction.
    pub(super) fn apply(&self, db: &Connection, epoch: u64) -> rusqlite::Result<Verdict> {
        if self.first.lease.epoch != epoch {
            return Ok(Err(StorageError::Fenced));
        }
        if let Some((_, head)) = append::find(db, &self.first.lease.session)? {
            return Ok(Err(StorageError::Conflict(head)));
        }
        let at = self.from.at;
        let parent = append::find(db, &self.from.parent)?.filter(|(_, head)| at > 0 && at <= *head);
        let Some((parent, _)) = parent else {
            let missing = format!("event {at} of {}", self.from.parent);
            return Ok(Err(StorageError::Missing(missing)));
        };
        let owner = owner(db, parent, at)?;
        let head = at + self.first.bodies.len() as Seq;
        let child = self.first.insert(db, head)?;
        db.prepare_cached("INSERT INTO forks (child, parent, base) VALUES (?1, ?2, ?3)")?
            .execute(params![child, owner, to_sql(at)])?;
        self.first.write_events(db, child)?;
        Ok(Ok(head))
    }
}

/// Where a fork's history leads: its parent and the last event that they share.
pub(super) fn base(db: &Connection, child: i64) -> rusqlite::Result<Option<(i64, Seq)>> {
    db.prepare_cached("SELECT parent, base FROM forks WHERE child = ?1")?
        .query_row([child], |row| Ok((row.get(0)?, from_sql(row.get(1)?))))
        .optional()
}

/// Whose own event this is, so that a fork of a fork is read no slower.
fn owner(db: &Connection, session: i64, seq: Seq) -> rusqlite::Result<i64> {
    match base(db, session)? {
        Some((parent, shared)) if seq <= shared => owner(db, parent, seq),
        Some(_) | None => Ok(session),
    }
}
