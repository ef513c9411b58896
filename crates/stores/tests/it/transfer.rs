//! Tests of copying a whole store into another one and back.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::id::{GeneratedId as _, RunId};
use quintet_kernel::port::{Alias, Artifact, Install, Page, RunJournal};
use quintet_kernel::run::{ControlAction, NewRun, RunCommand, RunRecord, RunState, begin, handle};
use quintet_kernel::session_summary::Fork;
use quintet_kernel::stamp::Stamp;
use quintet_kernel::time::Time;
use quintet_stores::transfer::{Report, TransferEnd, TransferError, compare, copy};
use quintet_stores::{DataDir, postgres};
use quintet_testkit::postgres::Server;
use serde_json::{Map, json};

use crate::stores_under_test::{
    batch, blob, node, node_with_objects, object_settings, session, summary,
};

fn sqlite(path: &Path) -> TransferEnd {
    let dir = DataDir::open(path).unwrap();
    let store = Arc::new(dir.sqlite().unwrap());
    TransferEnd {
        runs: store.clone(),
        store,
        blobs: Arc::new(dir.blobs().unwrap()),
        uploads: Arc::new(dir.uploads().unwrap()),
    }
}

fn postgres(store: postgres::Store) -> TransferEnd {
    let store = Arc::new(store);
    TransferEnd { store: store.clone(), runs: store.clone(), blobs: store.clone(), uploads: store }
}

/// Stores some data of every kind.
async fn fill(side: &TransferEnd) {
    let TransferEnd { store, runs, blobs, uploads } = side;
    blobs.put(b"b".to_vec()).await.unwrap();
    let lease = store.acquire(&session("s")).await.unwrap();
    store.append(&lease, 0, batch(summary("s", 1, 1), &["x", "#b", "#never-kept"])).await.unwrap();
    store.append(&lease, 3, batch(summary("s", 1, 5), &["y"])).await.unwrap();
    store.append(&lease, 4, batch(summary("s", 1, 7), &["~text", "~more"])).await.unwrap();
    for (child, parent, at) in [("t", "s", 2), ("u", "t", 3), ("w", "gone", 1)] {
        if parent == "gone" {
            let lease = store.acquire(&session("gone")).await.unwrap();
            store.append(&lease, 0, batch(summary("gone", 8, 8), &["x"])).await.unwrap();
        }
        let lease = store.acquire(&session(child)).await.unwrap();
        let from = Fork { parent: session(parent), at };
        let mut summary = summary(child, 9, 9);
        summary.forked = Some(from.clone());
        summary.open = child == "u";
        store.fork(&lease, &from, batch(summary, &["z"])).await.unwrap();
    }
    let gone = store.acquire(&session("gone")).await.unwrap();
    store.erase(&gone).await.unwrap();
    let alias = Alias { space: "desk".into(), name: "j".into() };
    store.set_alias(&alias, &session("s"), None).await.unwrap();
    store.set_preference("x", "me", json!({ "mode": "agent" })).await.unwrap();
    store
        .register(Install {
            id: "i".into(),
            user: "me".into(),
            token: "hash".into(),
            created: Time::from_micros(1),
            seen: Time::from_micros(2),
            system: None,
        })
        .await
        .unwrap();
    let mut upload = uploads.begin().await.unwrap();
    upload.write(vec![7; 1_500_000]).await.unwrap();
    upload.commit("a.png").await.unwrap();
    store
        .add(Artifact {
            id: "a.png".into(),
            owner: None,
            mime: "image/png".into(),
            size: 1_500_000,
            sha256: "0".repeat(64),
            created: Time::from_micros(3),
        })
        .await
        .unwrap();
    store.claim("a.png", &session("s")).await.unwrap();
    run(&**runs).await;
}

async fn run(store: &dyn RunJournal) {
    let id = RunId::named("r".into());
    let new = NewRun {
        workspace: "w".into(),
        agent: None,
        query: "do it".into(),
        requested_by: None,
        files: Vec::new(),
        metadata: Map::new(),
        conversation: None,
    };
    let first = RunRecord { seq: 1, at: Time::from_micros(1), event: begin(&id, new) };
    let mut state = RunState::begun(id.clone(), &first).unwrap();
    store.begin(state.clone(), first, 9).await.unwrap();
    let stop = RunCommand::Control { action: ControlAction::Stop, requested_by: None, bulk: false };
    let stamp = Stamp::new(Time::from_micros(2), [7, 7]);
    let record = handle(&mut state, stop, &stamp).unwrap().unwrap();
    store.append(&id, record, state.progress.clone()).await.unwrap();
}

#[tokio::test]
async fn a_store_is_copied_there_and_back() {
    check(node(&Server::shared().fresh(), "a")).await;
    check(node_with_objects(&Server::shared().fresh(), "a", &object_settings())).await;
}

async fn check(there: postgres::Store) {
    let (home, back) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, there) = (sqlite(home.path()), postgres(there));
    fill(&from).await;
    let copied = copy(&from, &there).await.unwrap();
    let report = Report { sessions: 4, events: 15, blobs: 1, aliases: 1, installs: 1, ..copied };
    assert_eq!(copied, report);
    assert_eq!((copied.artifacts, copied.runs), (1, 1));
    compare(&from, &there).await.unwrap();
    // A second copy changes nothing.
    copy(&from, &there).await.unwrap();
    compare(&from, &there).await.unwrap();
    let again = sqlite(back.path());
    copy(&there, &again).await.unwrap();
    compare(&from, &again).await.unwrap();
    // Forks still share events.
    let lease = again.store.acquire(&session("s")).await.unwrap();
    again.store.erase(&lease).await.unwrap();
    let all = Page { events: 99, bytes: usize::MAX };
    assert_eq!(again.store.read(&session("u"), 0, all).await.unwrap().len(), 4);
    assert_eq!(again.blobs.get(&blob("b")).await.unwrap(), b"b");
}

#[tokio::test]
async fn a_target_with_other_content_is_refused() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (sqlite(home.path()), sqlite(other.path()));
    fill(&from).await;
    let lease = to.store.acquire(&session("mine")).await.unwrap();
    to.store.append(&lease, 0, batch(summary("mine", 1, 1), &["x"])).await.unwrap();
    let refused = copy(&from, &to).await;
    assert!(matches!(refused, Err(TransferError::Foreign(_))), "{refused:?}");
    assert_eq!(to.store.list(99).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_difference_is_named() {
    let (home, url) = (tempfile::tempdir().unwrap(), Server::shared().fresh());
    let (from, to) = (sqlite(home.path()), postgres(node(&url, "a")));
    fill(&from).await;
    copy(&from, &to).await.unwrap();
    let change = "UPDATE events SET at = at + 1 WHERE seq = 2 AND session = (
        SELECT key FROM sessions WHERE id = 's')";
    Server::shared().run_on(&url, change);
    let different = compare(&from, &to).await.unwrap_err().to_string();
    assert!(different.contains("after event 0 is not the same"), "{different}");
}

#[tokio::test]
async fn content_that_differs_is_named() {
    let (home, url) = (tempfile::tempdir().unwrap(), Server::shared().fresh());
    let objects = object_settings();
    let (from, to) = (sqlite(home.path()), postgres(node_with_objects(&url, "a", &objects)));
    fill(&from).await;
    copy(&from, &to).await.unwrap();
    // A missing object, as in another bucket.
    Server::shared().run_on(&url, "UPDATE blobs SET object = object || '0'");
    let different = compare(&from, &to).await.unwrap_err().to_string();
    assert_eq!(different, format!("blob {} is not the same in both stores", blob("b")));
}
