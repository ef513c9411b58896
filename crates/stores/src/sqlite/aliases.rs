//! Aliases of sessions.

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Alias, StorageError};
use rusqlite::{Connection, OptionalExtension};

use super::writer::WriteResult;

/// Sets an alias, if allowed, and returns the session that has it. Must run in a transaction.
pub(super) fn set(
    db: &Connection,
    alias: &Alias,
    session: &SessionId,
    instead_of: Option<&SessionId>,
) -> rusqlite::Result<WriteResult<SessionId>> {
    let holder = find(db, alias)?;
    if let Some(holder) =
        holder.filter(|holder| instead_of.is_none_or(|old| old.as_str() != holder))
    {
        return Ok(self::session(&holder));
    }
    db.prepare_cached("INSERT OR REPLACE INTO aliases (space, name, session) VALUES (?1, ?2, ?3)")?
        .execute([&alias.space, &alias.name, session.as_str()])?;
    Ok(Ok(session.clone()))
}

/// The session of an alias.
pub(super) fn find(db: &Connection, alias: &Alias) -> rusqlite::Result<Option<String>> {
    db.prepare_cached("SELECT session FROM aliases WHERE space = ?1 AND name = ?2")?
        .query_row([&alias.space, &alias.name], |row| row.get(0))
        .optional()
}

/// Parses the session id stored with an alias.
pub(super) fn session(id: &str) -> Result<SessionId, StorageError> {
    SessionId::parse(id).ok_or_else(|| StorageError::Damaged(format!("an alias of {id:?}")))
}
