//! Tests of files that are refused and not changed.

use std::fs;
use std::path::Path;

use quintet_kernel::port::{Journal, Leases, Page, SessionIndex, StorageError};
use quintet_kernel::session_summary::SessionSummary;
use quintet_stores::{Error, sqlite};
use rusqlite::Connection;

use crate::stores_under_test::{batch, session, summary};

/// Creates and fills a database, changes it and tries to open it.
async fn check(damage: impl Fn(&Path), then: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    fill(&path).await;
    damage(&path);
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

/// Every file except SQLite's index of the log, which holds no data.
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

/// Overwrites a part of the file.
fn overwrite(from: usize, len: usize) -> impl Fn(&Path) {
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
async fn a_file_that_is_no_database_is_not_changed() {
    check(|path| fs::write(path, "my diary").unwrap(), "not a database").await;
    check(|path| fs::write(path, "my diary".repeat(5000)).unwrap(), "not a database").await;
    check(|path| fs::write(path, "").unwrap(), "not a database").await;
    check(overwrite(0, 16), "not a database").await;
}

#[tokio::test]
async fn files_of_other_programs_and_newer_versions_are_not_changed() {
    check(pragma("application_id", 0), "foreign").await;
    check(pragma("application_id", 7), "foreign").await;
    check(pragma("user_version", 99), "newer").await;
    check(pragma("user_version", -1), "newer").await;
}

#[tokio::test]
async fn a_damaged_file_is_not_changed() {
    check(|path| fs::write(path, &fs::read(path).unwrap()[..20_000]).unwrap(), "damaged").await;
    check(|path| fs::write(path, &fs::read(path).unwrap()[..5000]).unwrap(), "damaged").await;
    check(overwrite(100, 3996), "damaged").await;
    for tree in ["sessions", "events", "sqlite_autoindex_sessions_1", "sessions_by_creation"] {
        check(|path| overwrite((root(path, tree) - 1) * PAGE, PAGE)(path), "damaged").await;
    }
}

#[tokio::test]
async fn damage_in_other_pages_is_found_when_they_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    fill(&path).await;
    // A leaf page, but not the last one, which is checked at opening.
    let pages = fs::read(&path).unwrap().len() / PAGE;
    overwrite((pages - 12) * PAGE, 8 * PAGE)(&path);
    let store = sqlite::SqliteStore::open(&path).unwrap();
    let read = store.read(&session("s"), 0, Page { events: 999, bytes: usize::MAX }).await;
    assert!(matches!(read, Err(StorageError::Damaged(_))), "{read:?}");
}

#[tokio::test]
async fn an_unreadable_session_does_not_hide_others() {
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
    // An unreadable session is not counted: a list shorter than its limit is complete.
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
async fn a_newer_version_is_recognized_in_the_log() {
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
async fn a_log_without_its_database_is_not_replayed_into_a_new_one() {
    let orphan = |path: &Path| fs::rename(path, path.with_extension("db-wal")).unwrap();
    check(orphan, "damaged").await;
}

#[tokio::test]
async fn a_read_only_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = sqlite::SqliteStore::open(&dir.path().join("not/there.db")).unwrap_err();
    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    let error = sqlite::SqliteStore::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
}
