//! Snapshots of sessions: the latest of each session.

use quintet_kernel::event::Seq;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::Snapshot;
use rusqlite::{Connection, OptionalExtension, params};

use super::{append, fork, from_sql, to_sql};

/// Stores a snapshot, unless it covers events that do not exist. Must run in a transaction.
pub(super) fn keep(
    db: &Connection,
    session: &SessionId,
    snapshot: &Snapshot,
) -> rusqlite::Result<()> {
    let Snapshot { seq, format, body } = snapshot;
    if let Some((key, _)) = append::find(db, session)?.filter(|(_, head)| seq <= head) {
        db.prepare_cached(
            "INSERT OR REPLACE INTO snapshots (session, seq, format, body) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![key, to_sql(*seq), format, body])?;
    }
    Ok(())
}

/// The latest usable snapshot of a session: its own or, within the shared history, that of an
/// ancestor.
pub(super) fn find(db: &Connection, session: &SessionId) -> rusqlite::Result<Option<Snapshot>> {
    let mut next = append::find(db, session)?.map(|(key, _)| (key, Seq::MAX));
    while let Some((key, upto)) = next {
        let found = db
            .prepare_cached(
                "SELECT seq, format, body FROM snapshots WHERE session = ?1 AND seq <= ?2",
            )?
            .query_row(params![key, to_sql(upto)], |row| {
                Ok(Snapshot { seq: from_sql(row.get(0)?), format: row.get(1)?, body: row.get(2)? })
            })
            .optional()?;
        if found.is_some() {
            return Ok(found);
        }
        next = fork::base(db, key)?.map(|(parent, base)| (parent, base.min(upto)));
    }
    Ok(None)
}
