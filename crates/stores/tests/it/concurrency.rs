//! Tests of many concurrent sessions.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quintet_kernel::port::Page;
use tokio::task::JoinSet;

use crate::stores_under_test::{Store, Subject, batch, session, summary};

const SESSIONS: u64 = 32;
const APPENDS: u64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn sessions_do_not_disturb_each_other() {
    for subject in Subject::all() {
        let store = subject.start();
        let mut crowd = JoinSet::new();
        for number in 0..SESSIONS {
            crowd.spawn(write_and_read(Arc::clone(&store), format!("s{number}")));
        }
        crowd.join_all().await;
        assert_eq!(store.list(99).await.expect("a list").len() as u64, SESSIONS);
        drop(store);
        let store = subject.start();
        for number in 0..SESSIONS {
            let head = store.head(&session(&format!("s{number}"))).await.expect("a head");
            assert_eq!(head, Some(2 * APPENDS));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unpolled_read_does_not_block_others() {
    for subject in Subject::all() {
        let store = subject.start();
        let id = session("s");
        let mut neglected: Vec<_> = (0..64).map(|_| store.head(&id)).collect();
        for read in &mut neglected {
            let begun = poll_fn(|context| Poll::Ready(read.as_mut().poll(context)));
            let _ = begun.await;
        }
        let read = tokio::time::timeout(Duration::from_secs(30), store.head(&id)).await;
        assert_eq!(read.expect("there is a reply").expect("a head"), None);
    }
}

/// Appends in pipelined pairs, and reads them back as soon as they are acknowledged.
async fn write_and_read(store: Arc<dyn Store>, name: String) {
    let id = session(&name);
    let lease = store.acquire(&id).await.expect("a lease");
    for turn in 0..APPENDS {
        let expected = 2 * turn;
        let first = store.append(&lease, expected, batch(summary(&name, 1, 1), &["a"]));
        let second = store.append(&lease, expected + 1, batch(summary(&name, 1, 1), &["b"]));
        assert_eq!(second.await.expect("the second is stored"), expected + 2);
        assert_eq!(first.await.expect("the first is stored"), expected + 1);
        let records = store.read(&id, 0, Page { events: 99, bytes: 99_999 }).await.expect("a page");
        let numbers: Vec<u64> = records.iter().map(|record| record.seq).collect();
        assert_eq!(numbers, (1..=expected + 2).collect::<Vec<_>>());
    }
}
