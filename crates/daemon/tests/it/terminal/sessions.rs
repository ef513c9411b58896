//! Sessions: reconnecting, sharing with other protocols, saving and deleting.

use serde_json::json;

use super::client::{Terminal, of, text};
use super::{WITH_APPROVALS, shell};
use crate::daemon::World;

#[tokio::test]
async fn a_client_that_reconnects_gets_the_open_query() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let go = world.home.path().join("go");
    let script = json!([{ "deltas": ["one ", "two ", "three"], "hold_until": go }]);
    let started = terminal.query_with(world.workspace(), script, json!({})).await.unwrap();
    terminal.until("stream.token").await;
    drop(terminal);
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let session = started["session_id"].clone();
    let loaded = terminal.request("session.load", json!({ "session_id": session })).await.unwrap();
    assert_eq!(loaded["loaded"], true);
    assert_eq!(loaded["session"]["id"], session);
    assert_eq!(loaded["running_queries"][0]["query_id"], started["query_id"]);
    assert_eq!(loaded["messages"][0]["role"], "user");
    std::fs::write(&go, "").unwrap();
    let notes = terminal.until("stream.complete").await;
    assert_eq!(text(&notes), "one two three");
    assert_eq!(of(&notes, "stream.complete")[0]["query_id"], started["query_id"]);
    // The turn has ended, so a later client gets the messages and no stream.
    let mut late = Terminal::ready(&world.terminal()).await;
    let loaded = late.request("session.load", json!({ "session_id": session })).await.unwrap();
    assert_eq!(loaded["message_count"], 2);
    assert_eq!(loaded["messages"][1]["content"], "one two three");
    late.query(world.workspace(), json!([{ "text": "again" }])).await;
    assert_eq!(text(&late.until("stream.complete").await), "again");
}

#[tokio::test]
async fn a_client_that_sends_its_offset_gets_the_rest() {
    let world = World::start(WITH_APPROVALS).await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let script = json!([{ "text": "abcdef", "tools": [shell("echo x")] }, { "text": "ghi" }]);
    let started = terminal.query_with(world.workspace(), script, json!({})).await.unwrap();
    terminal.until("tool.request_approval").await;
    let mut other = Terminal::ready(&world.terminal()).await;
    let load = json!({ "session_id": started["session_id"], "offset": 4 });
    other.request("session.load", load).await.unwrap();
    let notes = other.until("tool.request_approval").await;
    assert_eq!(text(&notes), "ef");
    // Either may answer; both are notified.
    let call = of(&notes, "tool.request_approval")[0]["execution_id"].clone();
    let answer = json!({ "execution_id": call, "approved": true });
    other.request("tool.approve", answer).await.unwrap();
    for client in [&mut terminal, &mut other] {
        let notes = client.until("stream.complete").await;
        assert_eq!(text(&notes), "ghi");
        assert_eq!(of(&notes, "tool.complete").len(), 1);
    }
}

#[tokio::test]
async fn a_turn_of_another_protocol_can_be_approved() {
    let world = World::start(WITH_APPROVALS).await;
    let client = world.client();
    let session = client.create(world.workspace()).await;
    let script = json!([{ "tools": [shell("echo shared > shared")] }, { "text": "done" }]);
    client.say(&session, script).await;
    client.until(&session, |event| event.kind() == "approval_requested").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    terminal.request("session.load", json!({ "session_id": session })).await.unwrap();
    let notes = terminal.until("tool.request_approval").await;
    let approval = of(&notes, "tool.request_approval")[0];
    let answer = json!({ "execution_id": approval["execution_id"], "approved": true });
    terminal.request("tool.approve", answer).await.unwrap();
    let notes = terminal.until("stream.complete").await;
    assert_eq!(text(&notes), "done");
    client.until_over(&session).await;
    assert!(world.workspace().join("shared").exists());
}

#[tokio::test]
async fn a_query_survives_a_kill() {
    let mut world = World::start(WITH_APPROVALS).await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let script = json!([{ "text": "may I? ", "tools": [shell("echo x")] }, { "text": "thanks" }]);
    let started = terminal.query_with(world.workspace(), script, json!({})).await.unwrap();
    terminal.until("tool.request_approval").await;
    world.kill();
    world.restart();
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let load = json!({ "session_id": started["session_id"] });
    let loaded = terminal.request("session.load", load).await.unwrap();
    assert_eq!(loaded["running_queries"][0]["query_id"], started["query_id"]);
    let notes = terminal.until("tool.request_approval").await;
    assert_eq!(text(&notes), "may I? ");
    let call = &of(&notes, "tool.request_approval")[0]["execution_id"];
    terminal
        .request("tool.approve", json!({ "execution_id": call, "approved": true }))
        .await
        .unwrap();
    assert_eq!(text(&terminal.until("stream.complete").await), "thanks");
}

#[tokio::test]
async fn sessions_are_listed_exported_and_deleted() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let params = json!({ "message": "# hello\nthere", "context": { "cwd": world.workspace() } });
    let started = terminal.request("agent.query", params).await.unwrap();
    terminal.until("stream.complete").await;
    let session = started["session_id"].clone();
    let other = world.client().create(world.workspace()).await;
    let listed = terminal.request("session.list", json!({ "limit": 5 })).await.unwrap();
    assert_eq!(listed["status"], "success");
    let mine =
        listed["sessions"].as_array().unwrap().iter().find(|one| one["session_id"] == session);
    let mine = mine.unwrap();
    assert_eq!((&mine["title"], &mine["message_count"]), (&json!("# hello"), &json!(2)));
    assert!(mine["total_tokens"].as_u64().unwrap() > 0);
    assert!(mine["updated_at"].as_str().unwrap().ends_with("+00:00"), "{mine}");
    assert!(listed.to_string().contains("Untitled"), "the other one has no messages yet");
    assert_eq!(
        terminal.request("session.list", json!({ "limit": 1 })).await.unwrap()["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let exported =
        terminal.request("session.export", json!({ "format": "markdown" })).await.unwrap();
    let content = exported["content"].as_str().unwrap();
    assert!(content.contains("\\# hello") && content.contains("## Assistant"), "{content}");
    let deleted =
        terminal.request("session.delete", json!({ "session_id": session })).await.unwrap();
    assert_eq!((&deleted["status"], &deleted["deleted"]), (&json!("success"), &json!(true)));
    let (status, _) =
        world.client().get(&format!("/v1/sessions/{}", session.as_str().unwrap())).await;
    assert_eq!(status, 404);
    let again = terminal.request("session.delete", json!({ "session_id": session })).await;
    assert_eq!(again.unwrap_err()["code"], -32602);
    let (_, left) = world.client().get("/v1/sessions").await;
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["id"], other.as_str());
    // The next query creates a session.
    let next = terminal.query_with(world.workspace(), json!([{ "text": "x" }]), json!({})).await;
    assert_ne!(next.unwrap()["session_id"], session);
}

#[tokio::test]
async fn a_running_session_can_be_deleted() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let script = json!([{ "text": "a", "hang": true }]);
    let started = terminal.query_with(world.workspace(), script, json!({})).await.unwrap();
    terminal.until("stream.token").await;
    let delete = json!({ "session_id": started["session_id"] });
    terminal.request("session.delete", delete).await.unwrap();
    world.model.streaming(0).await;
    let listed = terminal.request("session.list", json!({})).await.unwrap();
    assert_eq!(listed["sessions"], json!([]));
}

#[tokio::test]
async fn a_saved_session_can_be_opened_and_continued() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let nothing = json!({ "path": world.home.path().join("data/saved/a.json") });
    assert_eq!(terminal.request("session.save", nothing).await.unwrap_err()["code"], -32000);
    let answer = "Look:\n```rust\nfn a() {}\n```\n";
    let script = json!([{ "text": answer }]);
    let started = terminal.query_with(world.workspace(), script, json!({})).await.unwrap();
    terminal.until("stream.complete").await;
    let path = world.home.path().join("data/saved/a.json");
    let save = json!({ "path": path, "include_history": true, "include_blocks": true });
    let saved = terminal.request("session.save", save).await.unwrap();
    assert_eq!((&saved["saved"], &saved["path"]), (&json!(true), &json!(path)));
    assert_eq!(saved["size"], path.metadata().unwrap().len());
    let load = json!({ "path": path });
    let same = terminal.request("session.load", load.clone()).await.unwrap();
    assert_eq!(same["session"]["id"], started["session_id"], "the session still exists");
    assert_eq!(same["session"]["blocks_count"], 2);
    let delete = json!({ "session_id": started["session_id"] });
    terminal.request("session.delete", delete).await.unwrap();
    let loaded = terminal.request("session.load", load).await.unwrap();
    assert_ne!(loaded["session"]["id"], started["session_id"]);
    assert_eq!(loaded["session"]["messages_count"], 2);
    assert_eq!(loaded["messages"][1]["content"], answer);
    terminal.query(world.workspace(), json!([{ "text": "more" }])).await;
    assert_eq!(text(&terminal.until("stream.complete").await), "more");
    let calls = world.model.calls();
    assert!(calls[calls.len() - 1]["messages"].to_string().contains("fn a() {}"));
    let outside = json!({ "path": world.home.path().join("a.json") });
    assert_eq!(terminal.request("session.save", outside).await.unwrap_err()["code"], -32005);
}

#[tokio::test]
async fn a_session_works_in_the_directory_of_its_client() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let started = terminal.request("agent.query", json!({ "message": "hi" })).await.unwrap();
    assert_eq!(text(&terminal.until("stream.complete").await), "echo: hi");
    let load = json!({ "session_id": started["session_id"] });
    let loaded = terminal.request("session.load", load).await.unwrap();
    assert_eq!(loaded["session"]["workspace"], json!(std::env::current_dir().unwrap()));
    // A later directory is sent to the model, and the workspace stays.
    let context = json!({ "cwd": world.workspace() });
    let params = json!({ "message": "and now?", "context": context });
    terminal.request("agent.query", params).await.unwrap();
    assert_eq!(text(&terminal.until("stream.complete").await), "echo: and now?");
    let calls = world.model.calls();
    let messages = calls[calls.len() - 1]["messages"].to_string();
    assert!(
        messages.contains(&format!("Current directory: {}", world.workspace().display())),
        "{messages}"
    );
}

#[tokio::test]
async fn a_query_that_waits_after_a_crash_can_be_continued() {
    let policy = "[approval]\nkinds = []\n[verify]\nauto = false\n[recovery]\npolicy = \"ask\"\n";
    let mut world = World::start(policy).await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let go = world.home.path().join("go");
    let script = json!([{ "deltas": ["one ", "two"], "hold_until": go }]);
    let started = terminal.query_with(world.workspace(), script, json!({})).await.unwrap();
    terminal.until("stream.token").await;
    world.kill();
    std::fs::write(&go, "").unwrap();
    world.restart();
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let load = json!({ "session_id": started["session_id"] });
    terminal.request("session.load", load).await.unwrap();
    loop {
        let note = terminal.note().await;
        if note["params"]["block"]["type"] == "interactive" {
            break;
        }
    }
    let resume = json!({ "query_id": started["query_id"] });
    terminal.request("agent.resume", resume).await.unwrap();
    let notes = terminal.until("stream.complete").await;
    assert_eq!(of(&notes, "stream.complete")[0]["status"], "success");
    assert!(text(&notes).ends_with("one two"), "{notes:#?}");
}
