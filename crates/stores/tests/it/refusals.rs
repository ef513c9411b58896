//! Files that are not opened, and not touched either.

use std::fs;
use std::path::Path;

use quintet_kernel::port::{Journal, Leases, Page, SessionIndex, StorageError};
use quintet_kernel::session_summary::SessionSummary;
use quintet_stores::{Error, sqlite};
use rusqlite::Connection;

use crate::stores_under_test::{batch, session, summary};

/// Makes a database with something in it, does something to it and tries to open it.
async fn check(spoil: impl Fn(&Path), then: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    fill(&path).await;
    spoil(&path);
    let before = files(dir.path());
    let error = sqlite::SqliteStore::open(&path).map(|_| "it opened").unwrap_err();
    let name = match &error {
        Error::InUse(_) => "in use",
        Error::NotADatabase(_) => "not a database",
        Error::Foreign(_) => "foreign",
        Error::Newer { found, known, .. } => {
            assert!(found > known, "{error}");
            "newer"
        }
        Error::Damaged { .. } => "damaged",
        Error::Server { .. } => "server",
        Error::Unusable { .. } => "unusable",
    };
    assert_eq!(name, then, "{error}");
    assert!(error.to_string().contains("test.db"), "{error}");
    assert!(files(dir.path()) == before, "{error}, but a file changed");
}

async fn fill(path: &Path) {
    let store = sqlite::SqliteStore::open(path).unwrap();
    let lease = store.acquire(&session("s")).await.unwrap();
    for expected in 0..200 {
        let word = "x".repeat(500);
        drop(store.append(&lease, expected, batch(summary("s", 1, 1), &[&word])));
    }
}

/// Every file but SQLite's index of the log, which is no data.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| !path.to_string_lossy().ends_with("-shm"))
        .map(|path| (path.to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .filter(|(name, bytes)| !name.ends_with("-wal") || !bytes.is_empty())
        .collect();
    files.sort();
    files
}

fn pragma(name: &'static str, value: i32) -> impl Fn(&Path) {
    move |path| Connection::open(path).unwrap().pragma_update(None, name, value).unwrap()
}

/// Bytes of a page of a new database.
const PAGE: usize = 1024;

/// Writes over part of the file.
fn scribble(from: usize, len: usize) -> impl Fn(&Path) {
    move |path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[from..from + len].fill(0xA5);
        fs::write(path, bytes).unwrap();
    }
}

/// The first page of a table or an index.
fn root(path: &Path, name: &str) -> usize {
    let db = Connection::open(path).unwrap();
    let query = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    db.query_row(query, [name], |row| row.get::<_, u32>(0)).unwrap() as usize
}

#[tokio::test]
async fn what_is_no_database_is_left_alone() {
    check(|path| fs::write(path, "my diary").unwrap(), "not a database").await;
    check(|path| fs::write(path, "my diary".repeat(5000)).unwrap(), "not a database").await;
    check(|path| fs::write(path, "").unwrap(), "not a database").await;
    check(scribble(0, 16), "not a database").await;
}

#[tokio::test]
async fn other_programs_and_newer_versions_are_left_alone() {
    check(pragma("application_id", 0), "foreign").await;
    check(pragma("application_id", 7), "foreign").await;
    check(pragma("user_version", 99), "newer").await;
    check(pragma("user_version", -1), "newer").await;
}

#[tokio::test]
async fn damage_is_left_alone() {
    check(|path| fs::write(path, &fs::read(path).unwrap()[..20_000]).unwrap(), "damaged").await;
    check(|path| fs::write(path, &fs::read(path).unwrap()[..5000]).unwrap(), "damaged").await;
    check(scribble(100, 3996), "damaged").await;
    for tree in ["sessions", "events", "sqlite_autoindex_sessions_1", "sessions_by_creation"] {
        check(|path| scribble((root(path, tree) - 1) * PAGE, PAGE)(path), "damaged").await;
    }
}

#[tokio::test]
async fn damage_deeper_down_is_found_when_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    fill(&path).await;
    // Somewhere among the leaves, but not the last of them, which is looked at before.
    let pages = fs::read(&path).unwrap().len() / PAGE;
    scribble((pages - 12) * PAGE, 8 * PAGE)(&path);
    let store = sqlite::SqliteStore::open(&path).unwrap();
    let read = store.read(&session("s"), 0, Page { events: 999, bytes: usize::MAX }).await;
    assert!(matches!(read, Err(StorageError::Damaged(_))), "{read:?}");
}

#[tokio::test]
async fn what_cannot_be_read_of_one_session_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let store = sqlite::SqliteStore::open(&path).unwrap();
    for name in ["a", "b", "c", "d"] {
        let lease = store.acquire(&session(name)).await.unwrap();
        let summary = SessionSummary { open: name != "d", ..summary(name, 1, 1) };
        store.append(&lease, 0, batch(summary, &["x", "y"])).await.unwrap();
    }
    drop(store);
    let db = Connection::open(&path).unwrap();
    db.execute("UPDATE sessions SET card = 'x' WHERE id = 'a'", []).unwrap();
    db.execute("UPDATE sessions SET id = 'a b' WHERE id = 'c'", []).unwrap();
    db.execute("UPDATE sessions SET card = CAST(x'ff' AS TEXT) WHERE id = 'd'", []).unwrap();
    db.execute("UPDATE events SET body = x'00' WHERE place = 2 << 32 | 2", []).unwrap();
    drop(db);
    let store = sqlite::SqliteStore::open(&path).unwrap();
    let ids = |summaries: Vec<SessionSummary>| {
        summaries.iter().map(|summary| summary.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(store.list(9).await.unwrap()), ["c", "b"]);
    assert_eq!(ids(store.recent(None, 9).await.unwrap()), ["c", "b"]);
    // It does not count as one either: whoever gets fewer than asked for has all that there are.
    assert_eq!(ids(store.recent(None, 2).await.unwrap()), ["c", "b"]);
    assert_eq!(ids(store.list(1).await.unwrap()), ["c"]);
    assert_eq!(store.open().await.unwrap(), [session("a"), session("b")]);
    let all = Page { events: 9, bytes: usize::MAX };
    assert!(matches!(store.summary(&session("a")).await, Err(StorageError::Damaged(_))));
    assert!(matches!(store.read(&session("b"), 0, all).await, Err(StorageError::Damaged(_))));
    assert_eq!(store.read(&session("a"), 0, all).await.unwrap().len(), 2);
    assert_eq!(store.read(&session("b"), 0, Page { events: 1, ..all }).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_newer_version_is_recognized_by_its_log_alone() {
    let newer = |path: &Path| {
        let db = Connection::open(path).unwrap();
        db.pragma_update(None, "user_version", 99).unwrap();
        let log = path.with_extension("db-wal");
        let (database, log_bytes) = (fs::read(path).unwrap(), fs::read(&log).unwrap());
        drop(db);
        fs::write(path, database).unwrap();
        fs::write(log, log_bytes).unwrap();
    };
    check(newer, "newer").await;
}

#[tokio::test]
async fn a_log_without_its_database_is_not_played_into_a_new_one() {
    let orphan = |path: &Path| fs::rename(path, path.with_extension("db-wal")).unwrap();
    check(orphan, "damaged").await;
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_unusable() {
    let dir = tempfile::tempdir().unwrap();
    let error = sqlite::SqliteStore::open(&dir.path().join("not/there.db")).unwrap_err();
    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    let error = sqlite::SqliteStore::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
}
