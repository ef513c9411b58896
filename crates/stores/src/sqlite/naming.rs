//! Outside names of sessions, and how one is given.

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Alias, StorageError};
use rusqlite::{Connection, OptionalExtension, params};

/// A name to be given.
#[derive(Debug)]
pub(super) struct Naming {
    pub(super) alias: Alias,
    pub(super) session: SessionId,
    /// Whom the name may be taken from.
    pub(super) instead_of: Option<SessionId>,
    /// Who gives it.
    pub(super) epoch: u64,
}

impl Naming {
    /// Gives the name, if it may be given, and says who has it. Must run in a transaction.
    pub(super) fn apply(
        &self,
        db: &Connection,
        epoch: u64,
    ) -> rusqlite::Result<Result<SessionId, StorageError>> {
        if self.epoch != epoch {
            return Ok(Err(StorageError::Fenced));
        }
        match find(db, &self.alias)? {
            Some(holder) if self.instead_of.as_ref().is_none_or(|old| old.as_str() != holder) => {
                let damaged = || StorageError::Damaged(format!("an alias of {holder:?}"));
                Ok(SessionId::parse(&holder).ok_or_else(damaged))
            }
            _ => {
                self.write(db)?;
                Ok(Ok(self.session.clone()))
            }
        }
    }

    fn write(&self, db: &Connection) -> rusqlite::Result<()> {
        let Alias { space, name } = &self.alias;
        db.prepare_cached(
            "INSERT OR REPLACE INTO aliases (space, name, session) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![space, name, self.session.as_str()])?;
        Ok(())
    }
}

/// The session that has a name.
pub(super) fn find(db: &Connection, alias: &Alias) -> rusqlite::Result<Option<String>> {
    db.prepare_cached("SELECT session FROM aliases WHERE space = ?1 AND name = ?2")?
        .query_row([&alias.space, &alias.name], |row| row.get(0))
        .optional()
}
