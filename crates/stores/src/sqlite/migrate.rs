//! The tables and their migrations.
//!
//! `user_version` is the number of completed steps. A released step is never changed.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::references;
use crate::Error;

/// `created` is indexed upwards and read backwards, so that of two sessions with the same time the later one
/// comes first. `open` indexes only the few rows with open turns. A fork's own events come after `base`; those
/// up to it belong to its parent and are kept as long as a fork shares them, even if the parent was deleted.
///
/// Since step 6 an event has the key `session << 32 | seq`, so that an append of text writes to one tree
/// only; the head of a session is its last event. Large values were moved out of the list of sessions.
///
/// Runs (step 7) are laid out the same way. The columns of a run, in addition to its journal, are for
/// finding it: in the queue (`waiting`), in the limit of its workspace (`active`), with its worker if
/// there are commands for it (`commands`), and where a worker may be lost (`leased`, `heartbeat`).
const STEPS: &[&str] = &[
    "
    CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        epoch INTEGER NOT NULL
    ) STRICT;
    INSERT INTO meta (id, epoch) VALUES (1, 0);

    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        head INTEGER NOT NULL,
        open INTEGER NOT NULL,
        card TEXT NOT NULL
    ) STRICT;
    CREATE INDEX sessions_by_creation ON sessions (created);
    CREATE INDEX sessions_open ON sessions (open) WHERE open = 1;

    CREATE TABLE events (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        format INTEGER NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (session, seq)
    ) STRICT;
",
    "
    CREATE TABLE aliases (
        space TEXT NOT NULL,
        name TEXT NOT NULL,
        session TEXT NOT NULL,
        PRIMARY KEY (space, name)
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE forks (
        child INTEGER PRIMARY KEY,
        parent INTEGER NOT NULL,
        base INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX forks_by_parent ON forks (parent, base);
    ALTER TABLE sessions ADD COLUMN workspace TEXT
        GENERATED ALWAYS AS (json_extract(card, '$.workspace')) VIRTUAL;
    CREATE INDEX sessions_by_use ON sessions (updated);
    CREATE INDEX sessions_by_workspace ON sessions (workspace, updated);
",
    "
    CREATE TABLE installs (
        install_id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        token_hash TEXT NOT NULL UNIQUE,
        created_at INTEGER NOT NULL,
        last_seen_at INTEGER NOT NULL,
        operating_system TEXT
    ) STRICT;
    CREATE TABLE preferences (
        space TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (space, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE artifacts (
        id TEXT PRIMARY KEY,
        owner TEXT,
        mime TEXT NOT NULL,
        size INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        created INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX artifacts_by_age ON artifacts (created);
    CREATE TABLE claims (
        artifact TEXT NOT NULL,
        session TEXT NOT NULL,
        PRIMARY KEY (artifact, session)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX claims_by_session ON claims (session);
",
    "
    CREATE TABLE refs (
        blob TEXT NOT NULL,
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (blob, session, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX refs_by_event ON refs (session, seq);
    CREATE TABLE loose (blob TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE index_6 (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        open INTEGER NOT NULL,
        workspace TEXT NOT NULL,
        card TEXT NOT NULL
    ) STRICT;
    INSERT INTO index_6 SELECT key, id, created, updated, open,
        iif(json_valid(card), coalesce(json_extract(card, '$.workspace'), ''), ''),
        iif(json_valid(card), json_remove(card, '$.system_prompt'), card)
        FROM sessions ORDER BY key;
    DROP TABLE sessions;
    ALTER TABLE index_6 RENAME TO sessions;
    CREATE INDEX sessions_by_creation ON sessions (created);
    CREATE INDEX sessions_open ON sessions (open) WHERE open = 1;
    CREATE INDEX sessions_by_use ON sessions (updated);
    CREATE INDEX sessions_by_workspace ON sessions (workspace, updated);

    CREATE TABLE events_6 (
        place INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        format INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    INSERT INTO events_6 SELECT session << 32 | seq, at, format, body
        FROM events ORDER BY session, seq;
    DROP TABLE events;
    ALTER TABLE events_6 RENAME TO events;

    CREATE TABLE snapshots (
        session INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        format TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE INDEX aliases_by_session ON aliases (session);
    INSERT OR IGNORE INTO claims (artifact, session)
        WITH RECURSIVE line (child, ancestor) AS (
            SELECT child, parent FROM forks
            UNION SELECT line.child, forks.parent FROM line JOIN forks ON forks.child = ancestor
        )
        SELECT artifact, heir.id FROM line
            JOIN sessions AS heir ON heir.key = child
            JOIN sessions AS parent ON parent.key = ancestor
            JOIN claims ON claims.session = parent.id;
",
    "
    CREATE TABLE runs (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        workspace TEXT NOT NULL,
        status TEXT NOT NULL,
        worker TEXT,
        commands INTEGER NOT NULL,
        waiting INTEGER NOT NULL,
        active INTEGER NOT NULL,
        leased INTEGER NOT NULL,
        heartbeat INTEGER,
        updated INTEGER NOT NULL,
        progress TEXT NOT NULL
    ) STRICT;
    CREATE INDEX runs_waiting ON runs (workspace, key) WHERE waiting = 1;
    CREATE INDEX runs_active ON runs (workspace, key) WHERE active = 1;
    CREATE INDEX runs_commanded ON runs (worker, key) WHERE commands > 0;
    CREATE INDEX runs_of_worker ON runs (worker, heartbeat) WHERE leased = 1;
    CREATE INDEX runs_leased ON runs (heartbeat) WHERE leased = 1;
    CREATE TABLE run_events (
        place INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        format INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
",
];

/// The step that added installs.
pub(super) const INSTALLS: u32 = 4;

/// The step that added references; events from before it must be searched for them.
const REFERENCES_VERSION: u32 = 5;

/// The newest known format.
pub(super) const NEWEST: u32 = STEPS.len() as u32;

/// Refuses a newer format.
pub(super) fn check(path: &Path, found: u32) -> Result<(), Error> {
    if found > NEWEST {
        return Err(Error::Newer { path: path.into(), found, known: NEWEST });
    }
    Ok(())
}

/// The format of a database.
pub(super) fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Migrates a database to the newest format.
pub(super) fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
    let version = version(db)?;
    if (1..NEWEST).contains(&version) {
        tracing::info!(from = version, to = NEWEST, "migrating the database");
    }
    for (step, number) in STEPS.iter().zip(1..).skip(version as usize) {
        take(db, step, number)?;
    }
    if version < NEWEST {
        // The header identifies the file to other programs.
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    Ok(())
}

fn take(db: &mut Connection, step: &str, number: u32) -> rusqlite::Result<()> {
    let step_taken = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    step_taken.execute_batch(step)?;
    if number == REFERENCES_VERSION {
        references::backfill(&step_taken)?;
    }
    step_taken.pragma_update(None, "user_version", number)?;
    step_taken.commit()
}

#[cfg(test)]
mod tests;
