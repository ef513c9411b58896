//! Forks a session: a pointer to the parent's history, and the first events of the fork.

use quintet_kernel::event::Seq;
use quintet_kernel::port::{Lease, StorageError};
use quintet_kernel::session_summary;
use tokio_postgres::Error;

use super::append::Append;
use super::connection::Connection;
use super::to_sql;
use super::writer::{Answer, Group};

/// Checks a fork and, if it is valid, writes it. The rows of both sessions must be locked, so that
/// the parent is not deleted meanwhile.
pub(super) async fn fork(
    group: &mut Group,
    lease: &Lease,
    from: &session_summary::Fork,
    first: &Append,
) -> Result<Answer<Seq>, Error> {
    let child = match group.leased(lease) {
        Ok(child) => child,
        Err(fenced) => return Ok(Err(fenced)),
    };
    if child.begun {
        return Ok(Err(StorageError::Conflict(child.head)));
    }
    let session_summary::Fork { parent, at } = from;
    let found = group.row(parent).filter(|row| row.begun && (1..=row.head).contains(at));
    let Some(key) = found.map(|row| row.key) else {
        return Ok(Err(StorageError::Missing(format!("event {at} of {parent}"))));
    };
    let at = to_sql(*at);
    let db = group.flushed().await?;
    let owner = owner(db, key, at).await?;
    let point = "INSERT INTO forks (child, parent, base) VALUES ($1, $2, $3)";
    db.execute(point, &[&child.key, &owner, &at]).await?;
    // The fork refers to the same artifacts as its parent, even after the parent is deleted.
    let inherit = "INSERT INTO claims (artifact, session)
        SELECT artifact, $2 FROM claims WHERE session = $1 ON CONFLICT DO NOTHING";
    db.execute(inherit, &[&parent.as_str(), &lease.session.as_str()]).await?;
    group.append(&lease.session, first);
    // The fork works in its parent's folder, so it belongs to the node with that folder.
    let home = "UPDATE sessions SET home = parent.home FROM sessions AS parent
        WHERE sessions.key = $1 AND parent.key = $2";
    group.flushed().await?.execute(home, &[&child.key, &key]).await?;
    Ok(Ok(first.head()))
}

/// The session that owns an event, so that a fork of a fork is read as fast.
async fn owner(db: &Connection, session: i64, seq: i64) -> Result<i64, Error> {
    let query = "SELECT parent FROM forks WHERE child = $1 AND base >= $2";
    let mut owner = session;
    while let Some(row) = db.row(query, &[&owner, &seq]).await? {
        owner = row.get(0);
    }
    Ok(owner)
}
