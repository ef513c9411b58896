//! Problems that editors have with other agents: slow servers, two sessions at once, and permission
//! requests that time out.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::daemon::World;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_or_fails_delays_no_session() {
    let world = World::start("").await;
    let mut editor = Editor::ready(&world, json!({}));
    let never = json!([{ "name": "START", "value": world.home.path().join("never") }]);
    let servers = json!([
        { "name": "slow", "command": "python3", "args": [FIXTURE], "env": never },
        { "name": "broken", "command": "false", "args": [], "env": [] },
        { "name": "absent", "command": "/nowhere/server", "args": [], "env": [] },
    ]);
    let params = json!({ "cwd": world.workspace(), "mcpServers": servers });
    let opened = editor.call("session/new", params).unwrap();
    assert_eq!(editor.seen.len(), 2, "nothing is sent before the response: {:#?}", editor.seen);
    let id = editor.script(opened["sessionId"].as_str().unwrap(), json!([{ "text": "ok" }]));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_can_be_opened_at_once() {
    let world = World::start("").await;
    let mut editor = Editor::ready(&world, json!({}));
    // Some editors leave the servers out, some send null.
    let first = editor.send("session/new", json!({ "cwd": world.workspace() }));
    let second =
        editor.send("session/new", json!({ "cwd": world.workspace(), "mcpServers": null }));
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let answer = editor.until(|message| message["id"] == first || message["id"] == second);
        sessions.push(answer["result"]["sessionId"].as_str().unwrap().to_owned());
    }
    assert_ne!(sessions[0], sessions[1]);
    let prompts: Vec<u64> =
        sessions.iter().map(|session| editor.script(session, json!([{ "text": "ok" }]))).collect();
    for _ in 0..2 {
        let answer =
            editor.until(|message| message["id"].as_u64().is_some_and(|id| prompts.contains(&id)));
        assert_eq!(answer["result"], json!({ "stopReason": "end_turn" }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_request_that_times_out_is_denied_and_cancelled() {
    let asking = "[approval]\nkinds = [\"write\"]\nexpires_seconds = 1\n[verify]\nauto = false\n";
    let world = World::start(asking).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let note = json!({ "name": "write_file", "args": { "path": "n", "content": "x" } });
    let id = editor.script(&session, json!([{ "tools": [note] }, { "text": "ok" }]));
    let request = editor.incoming("session/request_permission");
    let cancelled = editor.until(|message| message["method"] == "$/cancel_request");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    let ends = editor.updates("tool_call_update");
    let failed: Vec<&Value> = ends.iter().filter(|update| update["status"] == "failed").collect();
    assert!(failed[0].to_string().contains("nobody answered in time"), "{failed:?}");
    assert!(!world.workspace().join("n").exists());
}
