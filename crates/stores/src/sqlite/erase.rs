//! A session taken away: every trace of it in the database.

use quintet_kernel::port::{Lease, StorageError};
use rusqlite::{Connection, params};

use super::append::{self, Verdict};

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
            db.prepare_cached("DELETE FROM events WHERE session = ?1")?.execute(params![key])?;
            db.prepare_cached("DELETE FROM sessions WHERE key = ?1")?.execute(params![key])?;
        }
        Ok(Ok(0))
    }
}
