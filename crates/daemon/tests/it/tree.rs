//! Tests of what is written to the session tree while a turn runs.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::Client;
use crate::daemon::{World, until};

/// Measures what is written while a turn runs: the bytes added to the events, and whether
/// `session.json` was unchanged. Replaced files have another inode.
async fn written_while_streaming(client: &Client, folder: &Path, id: &str) -> (u64, bool) {
    let (events, session) = (folder.join("events.ndjson"), folder.join("session.json"));
    let inode = || std::fs::metadata(&session).unwrap().ino();
    let length = || std::fs::metadata(&events).unwrap().len();
    let text: Vec<String> = (0..100).map(|n| format!("word{n:04} ")).collect();
    // The turn stays open: the command waits for a file.
    let command = "until [ -e go ]; do sleep 0.05; done; rm go";
    let waits = json!({ "name": "shell", "args": { "command": command } });
    let script = json!([{ "deltas": text, "gap_ms": 5, "tools": [waits] }, { "text": "over" }]);
    let (before, file) = (length(), inode());
    client.say(id, script).await;
    let streamed = async || {
        let text = std::fs::read_to_string(&events).unwrap();
        text[usize::try_from(before).unwrap()..].contains("tool_call_started")
    };
    until("the call is in the tree", streamed).await;
    let (added, unchanged) = (length() - before, inode() == file);
    std::fs::write(folder.join("../../../workspace/go"), "").unwrap();
    client.until_over(id).await;
    until("session.json is written", async || inode() != file).await;
    (added, unchanged)
}

#[tokio::test]
async fn while_a_turn_runs_only_events_are_appended() {
    let world = World::start("").await;
    let client = world.client();
    let folder = |id: &str| world.data_dir().join("sessions").join(id);
    let fresh = client.create(world.workspace()).await;
    let (added, unchanged) = written_while_streaming(&client, &folder(&fresh), &fresh).await;
    assert!(unchanged, "session.json was written in the middle of a turn");
    let old = client.create(world.workspace()).await;
    for _ in 0..30 {
        client.say(&old, json!([{ "text": "word ".repeat(400) }])).await;
        client.until_over(&old).await;
    }
    let settled = async || {
        let events = std::fs::read_to_string(folder(&old).join("events.ndjson")).unwrap();
        let session = std::fs::read_to_string(folder(&old).join("session.json")).unwrap();
        events.matches("\"turn_completed\"").count() == 30
            && session.matches("\"role\": \"assistant\"").count() == 30
    };
    until("the tree is up to date", settled).await;
    let (later, unchanged) = written_while_streaming(&client, &folder(&old), &old).await;
    assert!(unchanged, "session.json was written in the middle of a turn");
    assert!(later < added * 3 / 2, "{later} bytes after 30 turns, {added} in a fresh session");
    // The position is in its own file.
    let read = |name: &str| std::fs::read(folder(&old).join(name)).unwrap();
    let kept = async || {
        let position: Value = serde_json::from_slice(&read("position.json")).unwrap();
        position["bytes"] == read("events.ndjson").len()
    };
    until("the position is kept", kept).await;
}

/// Number of answers in `session.json`.
fn answers(folder: &Path) -> usize {
    let session = std::fs::read_to_string(folder.join("session.json")).unwrap_or_default();
    session.matches("\"role\": \"assistant\"").count()
}

/// Number of ended turns in the log, if the position is its end.
fn logged_turns(folder: &Path) -> Option<usize> {
    let events = std::fs::read_to_string(folder.join("events.ndjson")).ok()?;
    let position = std::fs::read(folder.join("position.json")).ok()?;
    let position: Value = serde_json::from_slice(&position).ok()?;
    let whole = position["bytes"] == events.len() && position["running"] == false;
    whole.then(|| events.matches("\"turn_completed\"").count())
}

#[tokio::test]
async fn a_large_session_is_not_rewritten_after_every_turn() {
    let mut world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let folder = world.data_dir().join("sessions").join(&id);
    client.say(&id, json!([{ "text": "word ".repeat(100_000) }])).await;
    client.until_over(&id).await;
    until("the first turn is in session.json", async || answers(&folder) == 1).await;
    client.say(&id, json!([{ "text": "small" }])).await;
    client.until_over(&id).await;
    until("the second turn is in the log", async || logged_turns(&folder) == Some(2)).await;
    assert_eq!(answers(&folder), 1, "session.json was written for one small turn");
    // A delayed write also happens after a crash.
    world.kill();
    world.restart();
    until("the second turn is in session.json", async || answers(&folder) == 2).await;
}

#[tokio::test]
async fn a_session_that_is_erased_while_the_tree_is_off_is_removed_from_it() {
    let tree = "[harness]\nsession_tree = true\n";
    let mut world = World::start(&format!("[verify]\nauto = false\n{tree}")).await;
    let [erased, kept] = [
        world.client().create(world.workspace()).await,
        world.client().create(world.workspace()).await,
    ];
    let folder = |world: &World, id: &str| world.data_dir().join("sessions").join(id);
    let written = async || folder(&world, &erased).exists() && folder(&world, &kept).exists();
    until("both are in the tree", written).await;
    world.terminate();
    world.reconfigure(tree, "[harness]\nsession_tree = false\n");
    world.restart();
    let mut socket = world.socket().await;
    socket.ask("session.delete", json!({ "sessionId": erased })).await.unwrap();
    world.terminate();
    assert!(folder(&world, &erased).exists());
    world.reconfigure("session_tree = false", "session_tree = true");
    world.restart();
    until("its folder is gone", async || !folder(&world, &erased).exists()).await;
    assert!(folder(&world, &kept).exists());
}
