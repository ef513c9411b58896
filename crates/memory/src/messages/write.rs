//! Changes of the index, each in a transaction.

use quintet_kernel::event::Seq;
use quintet_kernel::message::Role;
use quintet_kernel::{SessionId, Time};
use rusqlite::{
    Connection, OptionalExtension as _, Transaction, TransactionBehavior, params, params_from_iter,
};

use super::collect::IndexedMessage;
use crate::{vectors, words};

/// New messages of a session.
#[derive(Clone, Debug)]
pub struct SessionUpdate {
    /// The session.
    pub session: SessionId,
    /// The session that owns the events before the first position, if the index must not have them
    /// twice.
    pub parent: Option<SessionId>,
    /// The title.
    pub title: String,
    /// The folder in which its tools work.
    pub workspace: String,
    /// The event up to which messages were collected.
    pub position: Seq,
    /// The messages after the last position. Messages that are already indexed are not changed.
    pub messages: Vec<IndexedMessage>,
}

pub(super) fn since(db: &Connection) -> rusqlite::Result<Time> {
    db.query_row("SELECT since FROM meta", [], |row| row.get(0)).map(Time::from_micros)
}

pub(super) fn checkpoint(db: &Connection, since: Time) -> rusqlite::Result<()> {
    db.execute("UPDATE meta SET since = ?1", [since.micros()])?;
    Ok(())
}

pub(super) fn position(db: &Connection, session: &SessionId) -> rusqlite::Result<Option<Seq>> {
    Ok(find(db, session)?.map(|(_, seq)| seq))
}

pub(super) fn update(db: &mut Connection, update: &SessionUpdate) -> rusqlite::Result<()> {
    let SessionUpdate { session, parent, title, workspace, position, messages } = update;
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known = find(&change, session)?.map_or(0, |(_, seq)| seq);
    let mut upsert = change.prepare_cached(
        "INSERT INTO sessions (id, parent, seq, title, workspace) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO UPDATE SET
            seq = max(seq, excluded.seq), title = excluded.title, workspace = excluded.workspace
         RETURNING key",
    )?;
    let parent = parent.as_ref().map(SessionId::as_str);
    let row = params![session.as_str(), parent, to_sql(*position), title, workspace];
    let key: i64 = upsert.query_row(row, |row| row.get(0))?;
    // Another process may have been faster.
    for message in messages.iter().filter(|message| message.seq > known) {
        insert(&change, key, message)?;
    }
    drop(upsert);
    change.commit()
}

/// Removes a session and empties its forks; returns the forks.
pub(super) fn remove(db: &mut Connection, session: &SessionId) -> rusqlite::Result<Vec<SessionId>> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let forks = sessions(&change, "parent = ?1", &[session.as_str()])?;
    for fork in &forks {
        if let Some((key, _)) = find(&change, fork)? {
            delete_messages(&change, key)?;
            change.execute("UPDATE sessions SET seq = 0, parent = NULL WHERE key = ?1", [key])?;
        }
    }
    if let Some((key, _)) = find(&change, session)? {
        delete_messages(&change, key)?;
        change.execute("DELETE FROM sessions WHERE key = ?1", [key])?;
    }
    change.commit()?;
    Ok(forks)
}

pub(super) fn sessions_to_reindex(db: &Connection) -> rusqlite::Result<Vec<SessionId>> {
    sessions(db, "seq = 0", &[])
}

fn sessions(db: &Connection, which: &str, by: &[&str]) -> rusqlite::Result<Vec<SessionId>> {
    let mut ids = db.prepare(&format!("SELECT id FROM sessions WHERE {which}"))?;
    let ids = ids.query_map(params_from_iter(by), |row| row.get::<_, String>(0))?;
    let ids: Vec<String> = ids.collect::<rusqlite::Result<_>>()?;
    Ok(ids.iter().filter_map(|id| SessionId::parse(id)).collect())
}

fn find(db: &Connection, session: &SessionId) -> rusqlite::Result<Option<(i64, Seq)>> {
    db.prepare_cached("SELECT key, seq FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
        })
        .optional()
}

fn insert(change: &Transaction<'_>, key: i64, message: &IndexedMessage) -> rusqlite::Result<()> {
    let IndexedMessage { seq, turn, message, role, at, text } = message;
    let id = change
        .prepare_cached(
            "INSERT INTO messages (session, seq, turn, message, role, at, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .insert(params![
            key,
            to_sql(*seq),
            turn.as_str(),
            message.as_str(),
            role_name(*role),
            at.micros(),
            text
        ])?;
    change
        .prepare_cached("INSERT INTO words (rowid, body) VALUES (?1, ?2)")?
        .execute(params![id, words::spaced(text)])?;
    if role.is_conversation() {
        vectors::add_pending(change, id)?;
    }
    Ok(())
}

fn delete_messages(change: &Transaction<'_>, key: i64) -> rusqlite::Result<()> {
    let mut messages = change.prepare_cached("SELECT id, text FROM messages WHERE session = ?1")?;
    // FTS5 needs the text of a message to delete its words.
    let mut unword = change
        .prepare_cached("INSERT INTO words (words, rowid, body) VALUES ('delete', ?1, ?2)")?;
    let mut rows = messages.query([key])?;
    while let Some(row) = rows.next()? {
        let (id, text): (i64, String) = (row.get(0)?, row.get(1)?);
        unword.execute(params![id, words::spaced(&text)])?;
    }
    vectors::delete(change, "SELECT id FROM messages WHERE session = ?1", key)?;
    change.execute("DELETE FROM messages WHERE session = ?1", [key])?;
    Ok(())
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// The role that was stored under a name.
pub(super) fn role(name: &str) -> Role {
    let roles = [Role::System, Role::User, Role::Assistant];
    roles.into_iter().find(|role| role_name(*role) == name).unwrap_or(Role::Tool)
}

/// A number as SQLite stores it. No number exceeds the range.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
