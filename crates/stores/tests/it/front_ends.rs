//! Tests of data of front ends, the same for every store.

use std::fs;
use std::sync::Arc;

use quintet_kernel::port::{Artifact, ERASED_SPACE, Install, StorageError, Uploads};
use quintet_kernel::time::Time;
use quintet_stores::{DataDir, FileUploads, sqlite};
use serde_json::{Value, json};

use crate::stores_under_test::{Store, Subject, batch, session, summary};

fn install(id: &str, token: &str, created: i64) -> Install {
    Install {
        id: id.into(),
        user: format!("user of {id}"),
        token: token.into(),
        created: Time::from_micros(created),
        seen: Time::from_micros(created),
        system: (id == "a").then(|| "Linux".into()),
    }
}

fn artifact(id: &str, created: i64) -> Artifact {
    Artifact {
        id: id.into(),
        owner: (id != "c.png").then(|| "me".into()),
        mime: "image/png".into(),
        size: 7,
        sha256: "0".repeat(64),
        created: Time::from_micros(created),
    }
}

async fn ids(store: &Arc<dyn Store>) -> Vec<String> {
    store.all().await.unwrap().into_iter().map(|install| install.id).collect()
}

#[tokio::test]
async fn installs_are_found_by_the_hash_of_their_token() {
    for subject in Subject::all() {
        let store = subject.start();
        store.register(install("b", "hash-b", 2)).await.unwrap();
        store.register(install("a", "hash-a", 1)).await.unwrap();
        let taken = store.register(install("c", "hash-a", 3)).await;
        assert!(matches!(taken, Err(StorageError::Unavailable(_))), "{taken:?}");
        drop(store);
        let store = subject.start();
        assert_eq!(store.find_by_token("hash-a").await.unwrap(), Some(install("a", "hash-a", 1)));
        assert_eq!(store.find_by_token("hash-").await.unwrap(), None);
        store.touch("a", Time::from_micros(9)).await.unwrap();
        let seen = store.find_by_token("hash-a").await.unwrap().unwrap().seen;
        assert_eq!(seen, Time::from_micros(9));
        assert_eq!(ids(&store).await, ["a", "b"]);
        assert!(store.revoke("a").await.unwrap());
        assert!(!store.revoke("a").await.unwrap());
        assert_eq!(store.find_by_token("hash-a").await.unwrap(), None);
        assert_eq!(ids(&store).await, ["b"]);
    }
}

#[tokio::test]
async fn preferences_are_kept_by_space_and_name() {
    for subject in Subject::all() {
        let store = subject.start();
        assert_eq!(store.preference("x", "me").await.unwrap(), None);
        store.set_preference("x", "me", json!({ "mode": "chat" })).await.unwrap();
        store.set_preference("x", "me", json!({ "mode": "agent", "n": [1, null] })).await.unwrap();
        store.set_preference("y", "me", json!(1)).await.unwrap();
        drop(store);
        let store = subject.start();
        let kept = store.preference("x", "me").await.unwrap();
        assert_eq!(kept, Some(json!({ "mode": "agent", "n": [1, null] })));
        assert_eq!(store.preference("y", "me").await.unwrap(), Some(json!(1)));
        assert_eq!(store.preference("x", "you").await.unwrap(), None);
        assert_eq!(store.names("x").await.unwrap(), ["me"]);
        store.set_preference("x", "me", Value::Null).await.unwrap();
        assert_eq!(store.preference("x", "me").await.unwrap(), None);
        assert_eq!(store.names("x").await.unwrap(), [] as [&str; 0]);
        assert_eq!(store.names("y").await.unwrap(), ["me"]);
    }
}

async fn unclaimed(store: &Arc<dyn Store>, before: i64) -> String {
    let found = store.unclaimed(Time::from_micros(before)).await.unwrap();
    found.into_iter().map(|artifact| artifact.id).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn an_artifact_stays_for_as_long_as_a_session_refers_to_it() {
    for subject in Subject::all() {
        let store = subject.start();
        for (id, created) in [("b.png", 20), ("a.png", 10), ("c.png", 30)] {
            store.add(artifact(id, created)).await.unwrap();
        }
        let lease = store.acquire(&session("s")).await.unwrap();
        store.append(&lease, 0, batch(summary("s", 1, 1), &["x"])).await.unwrap();
        assert_eq!(unclaimed(&store, 30).await, "a.png b.png");
        for _ in 0..2 {
            assert!(store.claim("a.png", &session("s")).await.unwrap());
        }
        assert!(!store.claim("n.png", &session("s")).await.unwrap());
        assert_eq!(unclaimed(&store, 99).await, "b.png c.png");
        assert!(!store.discard("a.png").await.unwrap());
        assert!(store.discard("b.png").await.unwrap());
        assert!(!store.discard("b.png").await.unwrap());
        assert!(!store.claim("b.png", &session("s")).await.unwrap());
        drop(store);
        let store = subject.start();
        assert_eq!(store.artifact("a.png").await.unwrap(), Some(artifact("a.png", 10)));
        assert_eq!(store.artifact("b.png").await.unwrap(), None);
        assert_eq!(store.artifact("c.png").await.unwrap(), Some(artifact("c.png", 30)));
        let lease = store.acquire(&session("s")).await.unwrap();
        store.erase(&lease).await.unwrap();
        assert_eq!(unclaimed(&store, 99).await, "a.png c.png");
    }
}

#[tokio::test]
async fn a_fork_inherits_the_claims_of_its_parent() {
    for subject in Subject::all() {
        let store = subject.start();
        store.add(artifact("a.png", 1)).await.unwrap();
        let lease = store.acquire(&session("s")).await.unwrap();
        store.append(&lease, 0, batch(summary("s", 1, 1), &["x"])).await.unwrap();
        store.claim("a.png", &session("s")).await.unwrap();
        let fork = store.acquire(&session("t")).await.unwrap();
        let from = quintet_kernel::session_summary::Fork { parent: session("s"), at: 1 };
        store.fork(&fork, &from, batch(summary("t", 1, 1), &["y"])).await.unwrap();
        store.erase(&lease).await.unwrap();
        assert_eq!(unclaimed(&store, 99).await, "");
        store.erase(&fork).await.unwrap();
        assert_eq!(unclaimed(&store, 99).await, "a.png");
    }
}

#[tokio::test]
async fn a_claim_is_made_before_a_later_erase() {
    for subject in Subject::all() {
        let store = subject.start();
        store.add(artifact("a.png", 1)).await.unwrap();
        let lease = store.acquire(&session("s")).await.unwrap();
        store.append(&lease, 0, batch(summary("s", 1, 1), &["x"])).await.unwrap();
        let name = session("s");
        let (claimed, erased) = (store.claim("a.png", &name), store.erase(&lease));
        assert!(claimed.await.unwrap());
        erased.await.unwrap();
        assert_eq!(unclaimed(&store, 99).await, "a.png");
        // Components with copies of the session learn of its deletion later.
        assert_eq!(store.names(ERASED_SPACE).await.unwrap(), ["s"]);
    }
}

#[tokio::test]
async fn writes_of_an_older_owner_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("q.db");
    let old: Arc<dyn Store> = Arc::new(sqlite::SqliteStore::open(&path).unwrap());
    let _new = sqlite::SqliteStore::open(&path).unwrap();
    let refused = old.set_preference("x", "me", json!(1)).await;
    assert!(matches!(refused, Err(StorageError::Fenced)), "{refused:?}");
}

#[tokio::test]
async fn installs_can_be_revoked_while_a_daemon_runs() {
    let dir = tempfile::tempdir().unwrap();
    assert!(DataDir::installs(dir.path()).is_none());
    let data = DataDir::open(dir.path()).unwrap();
    let store: Arc<dyn Store> = Arc::new(data.sqlite().unwrap());
    store.register(install("a", "hash-a", 1)).await.unwrap();
    let roll = DataDir::installs(dir.path()).unwrap();
    assert_eq!(roll.all().unwrap(), [install("a", "hash-a", 1)]);
    assert!(roll.revoke("a").unwrap());
    assert!(!roll.revoke("a").unwrap());
    assert_eq!(store.find_by_token("hash-a").await.unwrap(), None);
    // The daemon still owns its data.
    store.register(install("b", "hash-b", 2)).await.unwrap();
}

#[tokio::test]
async fn files_are_written_and_read_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let files = FileUploads::open(dir.path()).unwrap();
    let mut upload = files.begin().await.unwrap();
    for piece in ["he", "", "llo"] {
        upload.write(piece.into()).await.unwrap();
    }
    assert!(files.names().await.unwrap().is_empty());
    upload.commit("a.png").await.unwrap();
    assert_eq!(files.names().await.unwrap(), ["a.png"]);
    let part = async |from, length| files.part("a.png", from, length).await.unwrap();
    assert_eq!(part(0, 99).await, b"hello");
    assert_eq!(part(1, 3).await, b"ell");
    assert_eq!(part(9, 3).await, b"");
    let mut given_up = files.begin().await.unwrap();
    given_up.write(b"x".to_vec()).await.unwrap();
    drop(given_up);
    assert_eq!(fs::read_dir(dir.path().join("tmp")).unwrap().count(), 0);
    files.remove("a.png").await.unwrap();
    files.remove("a.png").await.unwrap();
    let gone = files.part("a.png", 0, 1).await;
    assert!(matches!(gone, Err(StorageError::Missing(_))), "{gone:?}");
}

#[tokio::test]
async fn unsafe_file_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("secret"), "x").unwrap();
    let files = FileUploads::open(&dir.path().join("files")).unwrap();
    for name in ["../secret", "", ".", "..", "tmp", "a/b", "/etc/passwd", ".hidden"] {
        let read = files.part(name, 0, 1).await;
        assert!(matches!(read, Err(StorageError::Missing(_))), "{name}: {read:?}");
        let upload = files.begin().await.unwrap();
        assert!(upload.commit(name).await.is_err(), "{name}");
        files.remove(name).await.unwrap();
    }
    assert!(dir.path().join("secret").exists());
}
