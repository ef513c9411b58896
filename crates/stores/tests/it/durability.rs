//! Tests of how much is written to disk for text.

use std::fs;
use std::path::Path;
use std::sync::Arc;

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

fn log(dir: &Path) -> u64 {
    fs::metadata(dir.join("quintet.db-wal")).unwrap().len()
}

#[tokio::test]
async fn text_costs_the_same_whatever_the_history() {
    let fresh = written(0, 0).await;
    let long = written(20_000, 100_000).await;
    assert!(long * 10 <= fresh * 12, "{long} after a long history, {fresh} before");
    // One page per append, and a few more when a page is full.
    assert!(fresh <= TEXTS * 2 * 4120, "{fresh}");
}
