//! Tests of several daemons on one PostgreSQL: any node serves any session, a dead one is taken
//! over, a paused one is fenced.

mod faults;
mod world;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{Client, ends_turn};
use crate::daemon::until;
use world::{LEASE_SECONDS, Node, Site};

const LEASE: Duration = Duration::from_secs(LEASE_SECONDS);
/// Only commands need approval.
const APPROVE_COMMANDS: &str = "[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n";

/// A command that creates a folder each time it runs.
fn marks(name: &str) -> Value {
    let command = format!("mktemp -d ran-{name}.XXXXXX");
    json!([{ "tools": [{ "name": "shell", "args": { "command": command } }] }, { "text": "done" }])
}

fn runs(site: &Site, name: &str) -> usize {
    let folders = site.workspace().read_dir().unwrap();
    let is_mark =
        |file: &std::ffi::OsStr| file.to_string_lossy().starts_with(&format!("ran-{name}."));
    folders.filter(|folder| is_mark(&folder.as_ref().unwrap().file_name())).count()
}

/// The call that waits for approval; waits for one.
async fn pending_approval(client: &Client, session: &str) -> String {
    let events = client.until(session, |event| event.kind() == "approval_requested").await;
    events.last().unwrap().json["data"]["tool_call_id"].as_str().unwrap().into()
}

async fn ends(client: &Client, session: &str) -> usize {
    let history = client.history(session).await;
    history.iter().filter(|event| ends_turn(event["type"].as_str().unwrap())).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_node_serves_any_session() {
    let site = Site::new(APPROVE_COMMANDS).await;
    let (a, b) = (Node::start(&site, "a"), Node::start(&site, "b"));
    let (at_a, at_b) = (a.client(), b.client());
    let session = at_a.create(site.workspace()).await;
    assert_eq!(at_b.session(&session).await["id"], session.as_str());
    // A command at b, a follower at b, an answer at b; the turn runs at a.
    at_b.say(&session, marks("any")).await;
    let call = pending_approval(&at_b, &session).await;
    let (status, body) = at_b.approve(&session, &call, "approve").await;
    assert_eq!(status, 200, "{body}");
    let (seen_at_b, seen_at_a) = (at_b.until_over(&session).await, at_a.until_over(&session).await);
    assert_eq!(seen_at_a, seen_at_b, "the same events under the same ids");
    assert_eq!(runs(&site, "any"), 1);
    // A refusal is returned unchanged.
    let (refused, _) = at_b.approve(&session, &call, "approve").await;
    assert_eq!(refused, at_a.approve(&session, &call, "approve").await.0);
    let listed = a.nodes(&[]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.lines().any(|line| line.starts_with("b ") && line.contains("alive")),
        "{listed}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_of_a_dead_node_is_answered_at_another() {
    let site = Site::new(APPROVE_COMMANDS).await;
    let (mut a, b) = (Node::start(&site, "a"), Node::start(&site, "b"));
    let session = a.client().create(site.workspace()).await;
    a.client().say(&session, marks("taken")).await;
    let call = pending_approval(&b.client(), &session).await;
    a.kill();
    let killed = Instant::now();
    // The command waits for the takeover; the client does not notice it.
    let (status, body) = b.client().approve(&session, &call, "approve").await;
    assert_eq!(status, 200, "{body}");
    println!("answered {:?} after the kill, with a lease of {LEASE:?}", killed.elapsed());
    b.client().until_over(&session).await;
    assert_eq!((runs(&site, "taken"), ends(&b.client(), &session).await), (1, 1));
    // After its restart, a serves the session that b owns.
    a.restart();
    assert_eq!(ends(&a.client(), &session).await, 1);
    a.client().say(&session, json!([{ "text": "again" }])).await;
    a.client().until_over(&session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_turn_continues_when_its_node_dies() {
    let site = Site::new("").await;
    let (mut a, b) = (Node::start(&site, "a"), Node::start(&site, "b"));
    let session = a.client().create(site.workspace()).await;
    let words: Vec<String> = (0..200).map(|n| format!("w{n} ")).collect();
    a.client().say(&session, json!([{ "deltas": words, "gap_ms": 20 }])).await;
    let mut events = b.client().follow(&session, "0").await;
    let mut seen = String::new();
    while !seen.contains("w20 ") {
        let event = events.next().await.unwrap();
        if event.kind() == "model_output_delta" {
            seen += event.json["data"]["delta"].as_str().unwrap();
        }
    }
    a.kill();
    let kept: String = b
        .client()
        .history(&session)
        .await
        .iter()
        .filter(|event| event["type"] == "model_output_delta")
        .map(|event| event["data"]["delta"].as_str().unwrap())
        .collect();
    assert!(kept.starts_with(&seen), "shown text is in the journal: {seen:?} {kept:?}");
    b.client().until_over(&session).await;
    assert_eq!(ends(&b.client(), &session).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_node_is_fenced() {
    let site = Site::new("").await;
    let (a, b) = (Node::start(&site, "a"), Node::start(&site, "b"));
    let session = a.client().create(site.workspace()).await;
    let words: Vec<String> = (0..100).map(|n| format!("w{n} ")).collect();
    let script = json!([{ "deltas": words, "gap_ms": 100 }]);
    a.client().say(&session, script).await;
    b.client().until(&session, |event| event.kind() == "model_output_delta").await;
    a.signal(Signal::STOP);
    b.client().until(&session, |event| event.kind() == "turn_resumed").await;
    a.signal(Signal::CONT);
    b.client().until_over(&session).await;
    // Node a serves the session again, which b owns.
    let at_a = a.client();
    until("a answers", async || at_a.get("/v1/sessions").await.0 == 200).await;
    assert_eq!(ends(&at_a, &session).await, 1);
    at_a.say(&session, json!([{ "text": "again" }])).await;
    at_a.until_over(&session).await;
    assert_eq!(site.gaps(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_database_loses_nothing() {
    let site = Site::new(APPROVE_COMMANDS).await;
    let (a, b) = (Node::start(&site, "a"), Node::start(&site, "b"));
    let session = a.client().create(site.workspace()).await;
    a.client().say(&session, marks("restart")).await;
    let call = pending_approval(&a.client(), &session).await;
    site.postgres.crash();
    let client = b.client();
    until("the answer is taken", async || {
        let (status, _) = client.approve(&session, &call, "approve").await;
        status == 200 || runs(&site, "restart") == 1
    })
    .await;
    client.until_over(&session).await;
    assert_eq!((runs(&site, "restart"), ends(&client, &session).await), (1, 1));
    assert_eq!(site.gaps(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_releases_its_sessions() {
    let site = Site::new(APPROVE_COMMANDS).await;
    let (mut a, b) = (Node::start(&site, "a"), Node::start(&site, "b"));
    let session = a.client().create(site.workspace()).await;
    a.client().say(&session, marks("drained")).await;
    let call = pending_approval(&a.client(), &session).await;
    let idle = a.client().create(site.workspace()).await;
    let drained = tokio::task::spawn_blocking(move || {
        let output = a.nodes(&["drain", "a"]);
        (a, output)
    });
    let (returned, output) = drained.await.unwrap();
    a = returned;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(b.nodes(&["drain", "nobody"]).status.code() != Some(0));
    // A client of the drained node notices nothing.
    assert_eq!(a.client().approve(&session, &call, "approve").await.0, 200);
    a.client().until_over(&session).await;
    a.client().say(&idle, json!([{ "text": "hi" }])).await;
    a.client().until_over(&idle).await;
    a.terminate();
    assert_eq!(b.client().session(&idle).await["id"], idle.as_str());
    assert_eq!(runs(&site, "drained"), 1);
}
