//! Deletes a session: everything in the database that no fork of it needs.

use quintet_kernel::event::Seq;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::ERASED_SPACE;
use rusqlite::Connection;

use super::append::{self, place};
use super::{fork, from_sql, preferences, references};

/// Deletes a session with its aliases and claims. Must run in a transaction.
pub(super) fn erase(db: &Connection, session: &SessionId) -> rusqlite::Result<()> {
    for query in ["DELETE FROM aliases WHERE session = ?1", "DELETE FROM claims WHERE session = ?1"]
    {
        db.prepare_cached(query)?.execute([session.as_str()])?;
    }
    let Some((key, _)) = append::find(db, session)? else { return Ok(()) };
    preferences::set(db, [ERASED_SPACE, session.as_str()], Some("true"))?;
    for query in ["DELETE FROM sessions WHERE key = ?1", "DELETE FROM snapshots WHERE session = ?1"]
    {
        db.prepare_cached(query)?.execute([key])?;
    }
    release(db, key)
}

/// Deletes the events of a deleted session that no fork shares; then those of deleted parents that only this
/// session shared.
fn release(db: &Connection, key: i64) -> rusqlite::Result<()> {
    let mut key = key;
    loop {
        let shared: Option<i64> = db
            .prepare_cached("SELECT max(base) FROM forks WHERE parent = ?1")?
            .query_row([key], |row| row.get(0))?;
        let after = shared.map_or(0, from_sql);
        db.prepare_cached("DELETE FROM events WHERE place > ?1 AND place <= ?2")?
            .execute([place(key, after), place(key, Seq::MAX)])?;
        references::remove_references(db, key, after)?;
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
