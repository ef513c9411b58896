//! Tests of how much is written to disk for text, and where.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::port::Journal as _;
use quintet_kernel::session_summary::SessionSummary;
use quintet_stores::DataDir;

use crate::stores_under_test::{Store, batch, session, summary};

const TEXTS: u64 = 200;

/// Appends text in small parts, each with its own commit; returns the growth of the log in bytes.
async fn written(history: u64, prompt: usize) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(DataDir::open(dir.path()).unwrap().sqlite().unwrap());
    let lease = store.acquire(&session("s")).await.unwrap();
    let labels = [("k".to_owned(), "x".repeat(prompt))].into();
    let summary = SessionSummary { labels, ..summary("s", 1, 1) };
    let words: Vec<String> = (0..history.max(1)).map(|n| format!("word {n} of history")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let head = store.append(&lease, 0, batch(summary.clone(), &words)).await.unwrap();
    let before = log(dir.path());
    let text = format!("~{}", "x".repeat(400));
    for head in head..head + TEXTS {
        store.append(&lease, head, batch(summary.clone(), &[&text])).await.unwrap();
    }
    log(dir.path()) - before
}

/// The bytes of the log up to its last frame; what is reserved behind that is zero.
fn log(dir: &Path) -> u64 {
    let log = fs::read(dir.join("quintet.db-wal")).unwrap();
    log.iter().rposition(|byte| *byte != 0).unwrap() as u64
}

#[tokio::test]
async fn text_costs_the_same_whatever_the_history() {
    let fresh = written(0, 0).await;
    let long = written(20_000, 100_000).await;
    assert!(long * 10 <= fresh * 12, "{long} after a long history, {fresh} before");
    // One page per append, and a few more when a page is full.
    assert!(fresh <= TEXTS * 2 * 4120, "{fresh}");
}

#[tokio::test]
async fn appends_overwrite_space_that_the_log_already_has() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(DataDir::open(dir.path()).unwrap().sqlite().unwrap());
    let lease = store.acquire(&session("s")).await.unwrap();
    let length = || fs::metadata(dir.path().join("quintet.db-wal")).unwrap().len();
    store.append(&lease, 0, batch(summary("s", 1, 1), &["first"])).await.unwrap();
    let reserved = length();
    for head in 1..TEXTS {
        store.append(&lease, head, batch(summary("s", 1, 1), &["more"])).await.unwrap();
    }
    assert!(log(dir.path()) < reserved, "not enough was reserved to show anything");
    assert_eq!(length(), reserved);
    // What a crash leaves behind is read up to its last event, whatever follows in the log.
    let crashed = tempfile::tempdir().unwrap();
    for file in ["quintet.db", "quintet.db-wal"] {
        fs::copy(dir.path().join(file), crashed.path().join(file)).unwrap();
    }
    let store = DataDir::open(crashed.path()).unwrap().sqlite().unwrap();
    assert_eq!(store.head(&session("s")).await.unwrap(), Some(TEXTS));
}
