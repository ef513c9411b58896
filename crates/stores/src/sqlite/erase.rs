//! A session taken away: every trace of it in the database that no fork of it needs.

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Lease, StorageError};
use rusqlite::{Connection, params};

use super::append::{self, Verdict};
use super::{fork, references};

/// A session to be taken away.
#[derive(Debug)]
pub(super) struct Erase {
    lease: Lease,
}

impl Erase {
    pub(super) fn new(lease: &Lease) -> Self {
        Self { lease: lease.clone() }
    }

    /// Judges it and, if it may be, does it. Must run in a transaction.
    pub(super) fn apply(&self, db: &Connection, epoch: u64) -> rusqlite::Result<Verdict> {
        if self.lease.epoch != epoch {
            return Ok(Err(StorageError::Fenced));
        }
        if let Some((key, _)) = append::find(db, &self.lease.session)? {
            db.prepare_cached("DELETE FROM sessions WHERE key = ?1")?.execute(params![key])?;
            release(db, key)?;
            forget_claims(db, key, &self.lease.session)?;
        }
        Ok(Ok(0))
    }
}

/// Whatever it referred to its forks may refer to as well.
fn forget_claims(db: &Connection, key: i64, session: &SessionId) -> rusqlite::Result<()> {
    if !db.prepare_cached("SELECT 1 FROM forks WHERE parent = ?1")?.exists([key])? {
        db.prepare_cached("DELETE FROM claims WHERE session = ?1")?.execute([session.as_str()])?;
    }
    Ok(())
}

/// Deletes the events of a session that is gone, as far as nobody shares them; then what it shared
/// itself with one that was gone before.
fn release(db: &Connection, key: i64) -> rusqlite::Result<()> {
    let mut key = key;
    loop {
        let shared: Option<i64> = db
            .prepare_cached("SELECT max(base) FROM forks WHERE parent = ?1")?
            .query_row([key], |row| row.get(0))?;
        db.prepare_cached("DELETE FROM events WHERE session = ?1 AND seq > ?2")?
            .execute(params![key, shared.unwrap_or(0)])?;
        references::drop_after(db, key, shared.unwrap_or(0))?;
        let parent = fork::base(db, key)?.filter(|_| shared.is_none());
        let Some((parent, _)) = parent else { return Ok(()) };
        db.prepare_cached("DELETE FROM forks WHERE child = ?1")?.execute([key])?;
        let lives = db.prepare_cached("SELECT 1 FROM sessions WHERE key = ?1")?.exists([parent])?;
        if lives {
            return Ok(());
        }
        key = parent;
    }
}
