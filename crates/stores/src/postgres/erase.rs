//! Deletes a session: everything in the database that no fork of it needs.

use quintet_kernel::id::SessionId;
use quintet_kernel::port::ERASED_SPACE;
use tokio_postgres::Error;

use super::connection::Connection;
use super::writer::{Group, Row};

/// Deletes a session with its aliases and claims. Its row stays, under a new key, as long as its
/// lease.
pub(super) async fn erase(group: &mut Group, session: &SessionId, row: &Row) -> Result<(), Error> {
    let db = group.flushed().await?;
    let id = session.as_str();
    for query in ["DELETE FROM aliases WHERE session = $1", "DELETE FROM claims WHERE session = $1"]
    {
        db.execute(query, &[&id]).await?;
    }
    if !row.begun {
        return Ok(());
    }
    let note = "INSERT INTO preferences (space, name, value) VALUES ($1, $2, 'true')
        ON CONFLICT (space, name) DO UPDATE SET value = excluded.value";
    db.execute(note, &[&ERASED_SPACE, &id]).await?;
    for query in ["DELETE FROM sessions WHERE key = $1", "DELETE FROM snapshots WHERE session = $1"]
    {
        db.execute(query, &[&row.key]).await?;
    }
    release(db, row.key).await?;
    let renew =
        "UPDATE journals SET key = nextval('session_keys'), begun = false, head = 0, at = NULL
        WHERE session = $1 RETURNING key";
    let renewed = db.row(renew, &[&id]).await?;
    if let (Some(renewed), Some(row)) = (renewed, group.row_mut(session)) {
        (row.key, row.begun, row.head) = (renewed.get(0), false, 0);
    }
    group.erased(session);
    Ok(())
}

/// Deletes the events of a deleted session that no fork shares; then those of deleted parents that
/// only this session shared. Serialized, because two concurrent deletions might each leave
/// something for the other.
async fn release(db: &Connection, key: i64) -> Result<(), Error> {
    let alone =
        "SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext('quintet erase'))";
    db.rows(alone, &[]).await?;
    let mut key = key;
    loop {
        let shared = "SELECT max(base) FROM forks WHERE parent = $1";
        let shared: Option<i64> = db.row(shared, &[&key]).await?.and_then(|row| row.get(0));
        let after = shared.unwrap_or(0);
        // Unreferenced content is kept for a while, from now on.
        let unused = "UPDATE blobs SET used = now() WHERE id IN (
            SELECT blob FROM refs WHERE session = $1 AND seq > $2)";
        for query in [
            unused,
            "DELETE FROM events WHERE session = $1 AND seq > $2",
            "DELETE FROM refs WHERE session = $1 AND seq > $2",
        ] {
            db.execute(query, &[&key, &after]).await?;
        }
        let parent = "SELECT parent, EXISTS (SELECT 1 FROM sessions WHERE key = forks.parent)
            FROM forks WHERE child = $1";
        let parent = db.row(parent, &[&key]).await?.filter(|_| shared.is_none());
        let Some(parent) = parent else { return Ok(()) };
        db.execute("DELETE FROM forks WHERE child = $1", &[&key]).await?;
        if parent.get(1) {
            return Ok(());
        }
        key = parent.get(0);
    }
}
