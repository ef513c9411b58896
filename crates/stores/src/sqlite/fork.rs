//! Forks a session: a pointer to the parent's history, and the first events of the fork.

use quintet_kernel::event::Seq;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Batch, StorageError};
use quintet_kernel::session_summary;
use rusqlite::{Connection, OptionalExtension, params};

use super::append::{self, Append};
use super::writer::WriteResult;
use super::{from_sql, to_sql};

/// A fork, encoded.
#[derive(Debug)]
pub(super) struct Fork {
    child: SessionId,
    from: session_summary::Fork,
    first: Append,
}

impl Fork {
    /// Encodes a fork and the events that are appended to it.
    pub(super) fn new(
        child: &SessionId,
        from: &session_summary::Fork,
        batch: &Batch,
    ) -> Result<Self, StorageError> {
        let first = Append::first(child, from.at, batch)?;
        Ok(Self { child: child.clone(), from: from.clone(), first })
    }

    /// Checks a fork and, if it is valid, writes it. A refusal has changed nothing.
    pub(super) fn apply(&self, db: &Connection) -> rusqlite::Result<WriteResult<Seq>> {
        if let Some((_, head)) = append::find(db, &self.child)? {
            return Ok(Err(StorageError::Conflict(head)));
        }
        let session_summary::Fork { parent, at } = &self.from;
        let found = append::find(db, parent)?.filter(|(_, head)| *at > 0 && at <= head);
        let Some((key, _)) = found else {
            return Ok(Err(StorageError::Missing(format!("event {at} of {parent}"))));
        };
        let owner = owner(db, key, *at)?;
        let child = self.first.insert(db)?;
        db.prepare_cached("INSERT INTO forks (child, parent, base) VALUES (?1, ?2, ?3)")?
            .execute(params![child, owner, to_sql(*at)])?;
        // The fork refers to the same artifacts as its parent, even after the parent is deleted.
        db.prepare_cached(
            "INSERT OR IGNORE INTO claims (artifact, session)
             SELECT artifact, ?2 FROM claims WHERE session = ?1",
        )?
        .execute([parent.as_str(), self.child.as_str()])?;
        Ok(Ok(self.first.head()))
    }
}

/// The parent of a fork and the last event that they share.
pub(super) fn base(db: &Connection, child: i64) -> rusqlite::Result<Option<(i64, Seq)>> {
    db.prepare_cached("SELECT parent, base FROM forks WHERE child = ?1")?
        .query_row([child], |row| Ok((row.get(0)?, from_sql(row.get(1)?))))
        .optional()
}

/// The session that owns an event, so that a fork of a fork is read as fast.
fn owner(db: &Connection, session: i64, seq: Seq) -> rusqlite::Result<i64> {
    match base(db, session)? {
        Some((parent, shared)) if seq <= shared => owner(db, parent, seq),
        Some(_) | None => Ok(session),
    }
}
