//! Tests of migrating databases of older versions.

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Artifacts as _, Journal as _, Page, SessionIndex as _};
use quintet_kernel::time::Time;

use super::super::header::APPLICATION_ID;
use super::*;
use crate::sqlite::SqliteStore;

const ALL: Page = Page { events: 99, bytes: usize::MAX };

fn id(name: &str) -> SessionId {
    SessionId::parse(name).expect("a name")
}

/// Migrates to a version, fills the tables, and opens the result.
fn reopened(dir: &Path, version: u32, fill: &str) -> SqliteStore {
    let path = dir.join("old.db");
    let mut db = Connection::open(&path).expect("a database");
    db.pragma_update(None, "application_id", APPLICATION_ID).expect("a label");
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).expect("a log");
    for (step, number) in STEPS.iter().zip(1..=version) {
        take(&mut db, step, number).expect("a step");
    }
    db.execute_batch(fill).expect("rows");
    drop(db);
    SqliteStore::open(&path).expect("the database is migrated")
}

fn summary(id: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","created":1,"updated":2,"status":"active","workspace":"/w",
        "system_prompt":"be kind","labels":{{}},"last_turn":null,"error":null,"open":false{more}}}"#
    )
}

#[tokio::test]
async fn sessions_of_version_5_are_found_and_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let label = |key: &str| format!(r#"{{"labelled":{{"key":"{key}","value":null}}}}"#);
    let rows = format!(
        "INSERT INTO sessions (key, id, created, updated, head, open, card) VALUES
            (1, 's', 1, 2, 3, 0, '{}'), (2, 't', 3, 4, 2, 1, '{}'), (3, 'u', 4, 5, 1, 0, '{{}}');
         INSERT INTO forks (child, parent, base) VALUES (2, 1, 1);
         INSERT INTO events (session, seq, at, format, body) VALUES
            (2, 2, 9, 1, CAST('{x}' AS BLOB)), (1, 2, 7, 1, CAST('{b}' AS BLOB)),
            (1, 1, 6, 1, CAST('{a}' AS BLOB)), (1, 3, 8, 1, CAST('{a}' AS BLOB)),
            (3, 1, 9, 1, CAST('{a}' AS BLOB));
         INSERT INTO artifacts VALUES ('a.png', NULL, 'image/png', 1, '', 0);
         INSERT INTO claims VALUES ('a.png', 's');",
        summary("s", ""),
        summary("t", r#","title":"hello""#),
        a = label("a"),
        b = label("b"),
        x = label("x"),
    );
    let store = reopened(dir.path(), 5, &rows);
    let found = store.summary(&id("s")).await.expect("a card").expect("it is there");
    assert_eq!(
        (found.head, found.updated, found.workspace.to_str()),
        (3, Time::from_micros(8), Some("/w"))
    );
    let heads = store.recent(Some(Path::new("/w")), 9).await.expect("a list");
    assert_eq!(heads.iter().map(|summary| summary.head).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(store.list(9).await.expect("a list").len(), 2, "an unreadable session is left out");
    assert!(store.summary(&id("u")).await.is_err());
    assert_eq!(store.open().await.expect("a list"), [id("t")]);
    let read = store.read(&id("t"), 0, ALL).await.expect("events");
    assert_eq!(read.iter().map(|record| record.at.micros()).collect::<Vec<_>>(), [6, 9]);
    let kept: u32 = Connection::open(dir.path().join("old.db"))
        .and_then(|db| {
            db.query_row("SELECT count(*) FROM sessions WHERE card LIKE '%kind%'", [], |row| {
                row.get(0)
            })
        })
        .expect("a number");
    assert_eq!(kept, 0, "prompts are in the journal");
    // The fork of an older version refers to its parent's artifacts.
    let lease = quintet_kernel::port::Lease { session: id("s"), epoch: 1 };
    store.erase(&lease).await.expect("gone");
    assert!(store.unclaimed(Time::from_micros(9)).await.expect("a list").is_empty());
}

/// A run whose progress was written by another version is computed from its journal.
#[tokio::test]
async fn a_run_with_unreadable_progress_is_read_from_its_journal() {
    let dir = tempfile::tempdir().expect("a directory");
    let created = r#"{"created":{"workspace":"w","query":"q","conversation":"c"}}"#;
    let stop = r#"{"controlled":{"control":{"id":"k","action":"stop","at":2},"status":"stopped","mode":"agent_only"}}"#;
    let rows = format!(
        "INSERT INTO runs (id, workspace, status, commands, waiting, active, leased, updated, progress)
            VALUES ('r', 'w', 'stopped', 1, 0, 0, 0, 2, '{{}}');
         INSERT INTO run_events (place, at, format, body) VALUES
            (1 << 32 | 1, 1, 1, CAST('{created}' AS BLOB)), (1 << 32 | 2, 2, 1, CAST('{stop}' AS BLOB));"
    );
    let store = reopened(dir.path(), NEWEST, &rows);
    let id = quintet_kernel::RunId::parse("r").expect("a name");
    let run = quintet_kernel::port::RunJournal::run(&store, &id)
        .await
        .expect("a run")
        .expect("it is there")
        .run;
    let progress = run.progress;
    assert_eq!((progress.status.name(), progress.head, progress.controls.len()), ("stopped", 2, 1));
}

#[tokio::test]
async fn references_are_found_in_a_database_that_had_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let name = "ab".repeat(32);
    let rows = format!(
        r#"INSERT INTO sessions (key, id, created, updated, head, open, card) VALUES (1, 's', 1, 2, 2, 0, '{}');
        INSERT INTO events (session, seq, at, format, body) VALUES
            (1, 1, 1, 1, CAST('{{"attachment_added":{{"name":"a","mime":"b","blob":"{name}","size":1}}}}' AS BLOB)),
            (1, 2, 1, 1, CAST('not an event' AS BLOB));"#,
        summary("s", "")
    );
    drop(reopened(dir.path(), 4, &rows));
    let db = Connection::open(dir.path().join("old.db")).expect("a database");
    let found: String =
        db.query_row("SELECT blob FROM refs", [], |row| row.get(0)).expect("one reference");
    assert_eq!(found, name);
}
