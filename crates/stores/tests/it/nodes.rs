//! Tests of several nodes on one database.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{
    BlobBody, Blobs, Inbox, Journal, Lease, Leases, NodeAddress, Nodes, Page, Preferences,
    SessionIndex, StorageError, StorageHealth, Uploads, Wake,
};
use quintet_kernel::session_summary::{Fork, SessionSummary};
use quintet_stores::{Error, postgres};
use quintet_testkit::postgres::Server;
use serde_json::json;

use crate::stores_under_test::{batch, node, session, settings, summary};

const ALL: Page = Page { events: 99, bytes: usize::MAX };

/// Makes a node's last heartbeat long ago, by the server's clock.
fn make_silent(url: &str, name: &str) {
    let long_ago = format!("UPDATE nodes SET heartbeat = '-infinity' WHERE name = '{name}'");
    Server::shared().run_on(url, &long_ago);
}

fn held_by(error: Result<Lease, StorageError>) -> String {
    match error {
        Err(StorageError::Held(NodeAddress { name, .. })) => name,
        other => panic!("not held: {other:?}"),
    }
}

/// A node that has the workspaces of all sessions.
fn with_all_workspaces(url: &str, name: &str) -> postgres::Store {
    let shared_workspaces = vec![PathBuf::from("/tmp/")];
    let settings = postgres::Settings { shared_workspaces, ..settings(url, name) };
    postgres::Store::open(&settings).unwrap()
}

#[tokio::test]
async fn a_session_has_one_owner_at_a_time() {
    let url = Server::shared().fresh();
    let (a, b) = (with_all_workspaces(&url, "a"), with_all_workspaces(&url, "b"));
    let lease = a.acquire(&session("s")).await.unwrap();
    a.append(&lease, 0, batch(summary("s", 1, 1), &["x"])).await.unwrap();
    assert_eq!(held_by(b.acquire(&session("s")).await), "a");
    assert_eq!(b.read(&session("s"), 0, ALL).await.unwrap().len(), 1, "every node may read");
    assert_eq!(b.summary(&session("s")).await.unwrap().unwrap().head, 1);
    a.release(&lease).await.unwrap();
    let mine = b.acquire(&session("s")).await.unwrap();
    b.append(&mine, 1, batch(summary("s", 1, 2), &["y"])).await.unwrap();
    let late = a.append(&lease, 2, batch(summary("s", 1, 2), &["z"])).await;
    assert!(matches!(late, Err(StorageError::Fenced)), "{late:?}");
    assert_eq!(held_by(a.acquire(&session("s")).await), "b");
}

#[tokio::test]
async fn a_dead_node_is_fenced_and_its_open_sessions_are_claimed_once() {
    let url = Server::shared().fresh();
    let (a, b, c) = (
        with_all_workspaces(&url, "a"),
        with_all_workspaces(&url, "b"),
        with_all_workspaces(&url, "c"),
    );
    let mut leases = Vec::new();
    for name in ["s", "t", "idle"] {
        let lease = a.acquire(&session(name)).await.unwrap();
        let summary = SessionSummary { open: name != "idle", ..summary(name, 1, 1) };
        a.append(&lease, 0, batch(summary, &["x"])).await.unwrap();
        leases.push(lease);
    }
    assert!(b.claim_open(9).await.unwrap().is_empty(), "the owner is alive");
    make_silent(&url, "a");
    let late = a.append(&leases[0], 1, batch(summary("s", 1, 2), &["z"])).await;
    assert!(matches!(late, Err(StorageError::Fenced)), "{late:?}");
    let (first, second) = tokio::join!(b.claim_open(9), c.claim_open(9));
    let mut claimed = [first.unwrap(), second.unwrap()].concat();
    claimed.sort();
    assert_eq!(claimed, [session("s"), session("t")]);
    assert!(b.claim_open(9).await.unwrap().is_empty());
    // Any node may own the idle session.
    let idle = c.acquire(&session("idle")).await.unwrap();
    assert_eq!(c.append(&idle, 1, batch(summary("idle", 1, 2), &["y"])).await.unwrap(), 2);
}

#[tokio::test]
async fn a_node_that_resumes_has_lost_its_leases() {
    let url = Server::shared().fresh();
    let lease = Duration::from_millis(400);
    let a = postgres::Store::open(&postgres::Settings { lease, ..settings(&url, "a") }).unwrap();
    let old = a.acquire(&session("s")).await.unwrap();
    a.append(&old, 0, batch(summary("s", 1, 1), &["x"])).await.unwrap();
    let lost = a.lost();
    make_silent(&url, "a");
    lost.await;
    let late = a.append(&old, 1, batch(summary("s", 1, 2), &["z"])).await;
    assert!(matches!(late, Err(StorageError::Fenced)), "{late:?}");
    let new = a.acquire(&session("s")).await.unwrap();
    assert_eq!(a.append(&new, 1, batch(summary("s", 1, 2), &["y"])).await.unwrap(), 2);
}

#[tokio::test]
async fn a_session_stays_with_the_node_that_has_its_workspace() {
    let url = Server::shared().fresh();
    let (a, b) = (node(&url, "a"), node(&url, "b"));
    let lease = a.acquire(&session("s")).await.unwrap();
    let open = SessionSummary { open: true, ..summary("s", 1, 1) };
    a.append(&lease, 0, batch(open, &["x"])).await.unwrap();
    a.release(&lease).await.unwrap();
    assert_eq!(held_by(b.acquire(&session("s")).await), "a");
    make_silent(&url, "a");
    assert_eq!(held_by(b.acquire(&session("s")).await), "a", "only a has the files");
    assert!(b.claim_open(9).await.unwrap().is_empty());
    let c = with_all_workspaces(&url, "c");
    assert_eq!(c.claim_open(9).await.unwrap(), [session("s")]);
}

#[tokio::test]
async fn a_fork_stays_with_the_workspace_of_its_parent() {
    let url = Server::shared().fresh();
    let (a, b) = (node(&url, "a"), node(&url, "b"));
    let lease = a.acquire(&session("s")).await.unwrap();
    a.append(&lease, 0, batch(summary("s", 1, 1), &["x"])).await.unwrap();
    let child = b.acquire(&session("f")).await.unwrap();
    let from = Fork { parent: session("s"), at: 1 };
    let mut first = batch(summary("f", 2, 2), &["y"]);
    first.summary.forked = Some(from.clone());
    b.fork(&child, &from, first).await.unwrap();
    b.release(&child).await.unwrap();
    assert_eq!(held_by(b.acquire(&session("f")).await), "a");
    a.acquire(&session("f")).await.unwrap();
}

#[tokio::test]
async fn an_abandoned_request_is_not_executed() {
    let url = Server::shared().fresh();
    let (a, b) = (with_all_workspaces(&url, "a"), with_all_workspaces(&url, "b"));
    let lease = a.acquire(&session("s")).await.unwrap();
    a.append(&lease, 0, batch(summary("s", 1, 1), &["x"])).await.unwrap();
    b.send(&session("s"), "k1", b"one".to_vec()).await.unwrap();
    assert_eq!(a.receive().await.unwrap().len(), 1);
    Server::shared().run_on(&url, "UPDATE inbox SET sent = sent - interval '1 hour'");
    assert!(a.receive().await.unwrap().is_empty());
}

#[tokio::test]
async fn nodes_are_listed_and_drained() {
    let url = Server::shared().fresh();
    let advertise = Some("http://127.0.0.1:9001".to_owned());
    let address = NodeAddress { name: "b".into(), advertise };
    let b = postgres::Settings { node: address.clone(), ..settings(&url, "b") };
    let (a, b) = (node(&url, "a"), postgres::Store::open(&b).unwrap());
    assert_eq!(b.this(), address);
    let lease = b.acquire(&session("s")).await.unwrap();
    let open = SessionSummary { open: true, ..summary("s", 1, 1) };
    b.append(&lease, 0, batch(open, &["x"])).await.unwrap();
    b.drain("a", true).await.unwrap();
    let missing = a.drain("n", true).await;
    assert!(matches!(missing, Err(StorageError::Missing(_))), "{missing:?}");
    a.drain("b", true).await.unwrap();
    a.drain("b", false).await.unwrap();
    drop(a);
    let listed = Nodes::list(&b).await.unwrap();
    let brief = listed.iter().map(|node| {
        (node.name.as_str(), node.alive, node.draining, node.sessions, node.open_turns)
    });
    assert_eq!(
        brief.collect::<Vec<_>>(),
        [("a", false, true, 0, 0), ("b", true, false, 1, 1)],
        "one that left is known still"
    );
    assert_eq!(listed[1].advertise, address.advertise);
    assert!(listed[1].heartbeat_age_ms < 60_000);
}

#[tokio::test]
async fn a_node_name_belongs_to_one_daemon() {
    let url = Server::shared().fresh();
    let short = postgres::Settings { lease: Duration::from_millis(300), ..settings(&url, "a") };
    let _a = postgres::Store::open(&short).unwrap();
    let error = postgres::Store::open(&short).unwrap_err().to_string();
    assert!(error.contains("another daemon is the node \"a\""), "{error}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_an_older_one_migrated() {
    let url = Server::shared().fresh();
    drop(node(&url, "a"));
    let version = "SELECT value FROM quintet_meta WHERE key = 'schema_version'";
    let known = Server::shared().run_on(&url, version);
    Server::shared().run_on(&url, "UPDATE quintet_meta SET value = '999'");
    match postgres::Store::open(&settings(&url, "a")) {
        Err(Error::Server { reason, .. }) => {
            assert!(
                reason
                    .contains(&format!("schema version 999, and this version knows up to {known}")),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
    Server::shared().run_on(&url, &format!("UPDATE quintet_meta SET value = '{known}'"));
    drop(node(&url, "a"));
    let empty = Server::shared().fresh();
    Server::shared().run_on(&empty, "CREATE TABLE quintet_meta (key text PRIMARY KEY, value text)");
    drop(node(&empty, "a"));
    assert_eq!(Server::shared().run_on(&empty, version), known);
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    let url = "postgres://me:secret@127.0.0.1:1/q";
    let error = postgres::Store::open(&settings(url, "a")).unwrap_err().to_string();
    assert!(error.starts_with("postgres://127.0.0.1:1/q cannot be used: "), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn other_nodes_are_woken_by_appends_commands_and_erasure() {
    let url = Server::shared().fresh();
    let (a, b) = (node(&url, "a"), node(&url, "b"));
    let mut wakes = b.wakes().unwrap();
    let lease = a.acquire(&session("s")).await.unwrap();
    a.append(&lease, 0, batch(summary("s", 1, 1), &["x", "y"])).await.unwrap();
    while !wakes.next().await.unwrap().contains(&(session("s"), Wake::Moved(2))) {}
    let mut of_owner = a.wakes().unwrap();
    b.send(&session("s"), "k", b"do it".to_vec()).await.unwrap();
    b.send(&session("s"), "k", b"do it again".to_vec()).await.unwrap();
    while !of_owner.next().await.unwrap().contains(&(session("s"), Wake::Inbox)) {}
    assert!(b.receive().await.unwrap().is_empty(), "the session belongs to another node");
    let received = a.receive().await.unwrap();
    assert_eq!(received.len(), 1);
    assert_eq!((received[0].key.as_str(), &*received[0].body), ("k", &b"do it"[..]));
    assert_eq!(b.take_reply("k").await.unwrap(), None);
    a.reply("k", b"done".to_vec()).await.unwrap();
    a.reply("k", b"done twice".to_vec()).await.unwrap();
    assert!(a.receive().await.unwrap().is_empty());
    for _ in 0..2 {
        assert_eq!(b.take_reply("k").await.unwrap(), Some(b"done".to_vec()));
    }
    a.erase(&lease).await.unwrap();
    while !wakes.next().await.unwrap().contains(&(session("s"), Wake::Erased)) {}
}

#[tokio::test]
async fn two_nodes_replace_a_setting_once() {
    let url = Server::shared().fresh();
    let (a, b) = (node(&url, "a"), node(&url, "b"));
    let mut expected = None;
    for n in 0..10 {
        let (of_a, of_b) = (json!({ "n": n, "by": "a" }), json!({ "by": "b", "n": n }));
        let (one, other) = tokio::join!(
            a.replace("x", "me", expected.clone(), of_a.clone()),
            b.replace("x", "me", expected.clone(), of_b.clone()),
        );
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(one ^ other, "{n}: {one} {other}");
        expected = Some(if one { of_a } else { of_b });
        assert_eq!(a.preference("x", "me").await.unwrap(), expected);
    }
    assert!(!a.replace("x", "me", None, json!(1)).await.unwrap());
    assert!(a.replace("x", "me", expected, json!(1)).await.unwrap());
    assert!(!b.replace("x", "me", Some(json!(2)), json!(3)).await.unwrap());
    assert_eq!(b.preference("x", "me").await.unwrap(), Some(json!(1)));
}

#[tokio::test]
async fn files_are_written_and_read_in_parts() {
    let url = Server::shared().fresh();
    let (a, b) = (node(&url, "a"), node(&url, "b"));
    let content: Vec<u8> = (0..2_500_000_u32).map(|n| (n / 7) as u8).collect();
    let mut upload = a.begin().await.unwrap();
    for piece in content.chunks(400_000) {
        upload.write(piece.to_vec()).await.unwrap();
    }
    assert!(Uploads::names(&b).await.unwrap().is_empty());
    upload.commit("a.bin").await.unwrap();
    a.begin().await.unwrap().commit("empty").await.unwrap();
    assert!(a.begin().await.unwrap().commit("../a").await.is_err());
    assert_eq!(Uploads::names(&b).await.unwrap(), ["a.bin", "empty"]);
    let part = async |name, from, length| b.part(name, from, length).await.unwrap();
    assert_eq!(part("a.bin", 0, usize::MAX >> 1).await, content);
    assert_eq!(part("a.bin", 1_048_570, 20).await, content[1_048_570..1_048_590]);
    assert_eq!(part("a.bin", 2_499_990, 99).await, content[2_499_990..]);
    assert_eq!(part("a.bin", 9_999_999, 9).await, b"");
    assert_eq!(part("empty", 0, 9).await, b"");
    b.remove("a.bin").await.unwrap();
    let gone = a.part("a.bin", 0, 1).await;
    assert!(matches!(gone, Err(StorageError::Missing(_))), "{gone:?}");
}

#[tokio::test]
async fn blobs_are_returned_whole_and_damage_is_detected() {
    let url = Server::shared().fresh();
    let store = node(&url, "a");
    let content = vec![7; 3 << 20];
    let id = store.put(content.clone()).await.unwrap();
    assert_eq!(store.body(&id, 5).await.unwrap(), BlobBody::Bytes(content.clone()));
    Server::shared().run_on(&url, "UPDATE blobs SET body = 'x'");
    assert!(matches!(store.get(&id).await, Err(StorageError::Damaged(_))));
    assert_eq!(store.put(content.clone()).await.unwrap(), id);
    assert_eq!(store.get(&id).await.unwrap(), content);
    let missing = store.get(&crate::stores_under_test::blob("n")).await;
    assert!(matches!(missing, Err(StorageError::Missing(_))), "{missing:?}");
}

/// Appends like a daemon: an append with unknown result is looked up.
async fn write(store: Arc<postgres::Store>, name: String, appends: u64) -> u64 {
    let id = session(&name);
    let mut acknowledged = 0;
    let mut lease = acquire(&store, &id).await;
    while acknowledged < appends {
        match store.append(&lease, acknowledged, batch(summary(&name, 1, 1), &["x"])).await {
            Ok(head) => acknowledged = head,
            Err(StorageError::Conflict(head)) => {
                assert_eq!(head, acknowledged + 1, "only the unanswered append may be stored");
                acknowledged = head;
            }
            Err(StorageError::Fenced) => lease = acquire(&store, &id).await,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    acknowledged
}

async fn acquire(store: &postgres::Store, id: &quintet_kernel::SessionId) -> Lease {
    loop {
        match store.acquire(id).await {
            Ok(lease) => return lease,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_connections_are_cut() {
    let url = Server::shared().fresh();
    let store = Arc::new(node(&url, "a"));
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..8 {
        writers.spawn(write(Arc::clone(&store), format!("s{number}"), 60));
    }
    // Only the connections of this test, which have its schema in their options.
    let schema = url.rsplit("%3D").next().unwrap().to_owned();
    let cut = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_locks JOIN pg_class ON pg_class.oid = relation
         WHERE relnamespace = '{schema}'::regnamespace AND pid <> pg_backend_pid()"
    );
    let mut cuts = 0;
    while !writers.is_empty() {
        let (sql, url) = (cut.clone(), url.clone());
        let count = tokio::task::spawn_blocking(move || Server::shared().run_on(&url, &sql));
        cuts += count.await.unwrap().parse::<u64>().unwrap();
        while let Some(done) = writers.try_join_next() {
            assert_eq!(done.unwrap(), 60);
        }
    }
    for number in 0..8 {
        let read = store.read(&session(&format!("s{number}")), 0, ALL).await;
        let read = match read {
            Ok(read) => read,
            Err(_) => store.read(&session(&format!("s{number}")), 0, ALL).await.unwrap(),
        };
        assert_eq!(read.len(), 60);
    }
    assert!(store.check().await.is_ok());
    assert!(cuts > 0, "connections were cut");
}
