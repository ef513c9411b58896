//! Permission requests.

use serde_json::{Value, json};

use super::editor::Editor;
use super::{WITH_APPROVALS, select};
use crate::daemon::World;

fn write_note(content: &str) -> Value {
    json!({ "name": "write_file", "args": { "path": "note.txt", "content": content } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_request_has_a_diff_and_unique_options() {
    let world = World::start(WITH_APPROVALS).await;
    std::fs::write(world.workspace().join("note.txt"), "one\ntwo\n").unwrap();
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let edit =
        json!({ "name": "edit_file", "args": { "path": "note.txt", "old": "two", "new": "2" } });
    let script = json!([{ "tools": [edit] }, { "tools": [write_note("all\n")] }, { "text": "ok" }]);
    let id = editor.script(&session, script);
    let first = editor.incoming("session/request_permission");
    let call = &first["params"]["toolCall"];
    let shown = editor.updates("tool_call");
    assert_eq!(shown[0]["toolCallId"], call["toolCallId"], "the call is sent first");
    assert_eq!((&shown[0]["kind"], &shown[0]["status"]), (&json!("edit"), &json!("pending")));
    assert_eq!((&call["title"], &call["status"]), (&json!("Edit note.txt"), &json!("pending")));
    let path = world.workspace().join("note.txt");
    let diff =
        json!({ "type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\n2\n" });
    assert_eq!(call["content"][0], diff);
    assert_eq!(call["locations"], json!([{ "path": path }]));
    editor.reply(&first, select(&first, "allow_once"));
    let second = editor.incoming("session/request_permission");
    for option in second["params"]["options"].as_array().unwrap() {
        let others = first["params"]["options"].as_array().unwrap();
        assert!(others.iter().all(|other| other["optionId"] != option["optionId"]));
    }
    // An option of the first request does not approve the second.
    editor.reply(&second, select(&first, "allow_once"));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n2\n");
    let ends: Vec<_> = editor.updates("tool_call_update");
    let ends: Vec<_> = ends.iter().filter(|update| update.get("rawOutput").is_some()).collect();
    assert_eq!((&ends[0]["status"], &ends[1]["status"]), (&json!("completed"), &json!("failed")));
    assert_eq!(ends[0]["content"], json!([diff]));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_client_may_answer_and_the_request_is_cancelled() {
    let world = World::start(WITH_APPROVALS).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let id = editor.script(&session, json!([{ "tools": [write_note("x")] }, { "text": "ok" }]));
    let request = editor.incoming("session/request_permission");
    let call = request["params"]["toolCall"]["toolCallId"].as_str().unwrap().to_owned();
    let client = world.client();
    assert_eq!(client.approve(&session, &call, "approve").await.0, 200);
    let cancelled = editor.until(|message| message["method"] == "$/cancel_request");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    // A late answer of the editor is ignored.
    editor.reply(&request, select(&request, "reject_once"));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(std::fs::read_to_string(world.workspace().join("note.txt")).unwrap(), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_request_survives_restarts_of_the_editor_and_the_daemon() {
    let mut world = World::start(WITH_APPROVALS).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    editor.script(&session, json!([{ "tools": [write_note("x")] }, { "text": "ok" }]));
    let request = editor.incoming("session/request_permission");
    editor.kill();
    world.kill();
    world.restart();
    let mut editor = Editor::ready(&world, json!({}));
    editor.load(&world, &session).unwrap();
    let again = editor.incoming("session/request_permission");
    assert_eq!(again["params"]["toolCall"], request["params"]["toolCall"]);
    editor.reply(&again, select(&again, "allow_once"));
    editor.until(|message| message["params"]["update"]["content"]["text"] == "ok");
    assert_eq!(std::fs::read_to_string(world.workspace().join("note.txt")).unwrap(), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_does_not_wait_for_an_answer() {
    let world = World::start(WITH_APPROVALS).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let id = editor.script(&session, json!([{ "tools": [write_note("x")] }, { "text": "ok" }]));
    let request = editor.incoming("session/request_permission");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "cancelled" })));
    editor.reply(&request, json!({ "outcome": { "outcome": "cancelled" } }));
    let next = editor.script(&session, json!([{ "text": "and on" }]));
    assert_eq!(editor.answer(next), Ok(json!({ "stopReason": "end_turn" })));
    assert!(!world.workspace().join("note.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_neither_approves_nor_denies() {
    let world = World::start(WITH_APPROVALS).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let id = editor.script(&session, json!([{ "tools": [write_note("x")] }, { "text": "ok" }]));
    let request = editor.incoming("session/request_permission");
    let error = json!({ "code": -32603, "message": "no dialog" });
    editor.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
    let cancelled = editor
        .until(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    assert!(cancelled.to_string().contains("no dialog"), "{cancelled}");
    let call = request["params"]["toolCall"]["toolCallId"].as_str().unwrap().to_owned();
    assert_eq!(world.client().approve(&session, &call, "deny").await.0, 200);
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert!(!world.workspace().join("note.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagents_permission_request_names_the_parent_session() {
    let world = World::start(WITH_APPROVALS).await;
    std::fs::write(world.workspace().join("a.txt"), "on disk").unwrap();
    let mut editor = Editor::ready(&world, json!({ "fs": { "readTextFile": true } }));
    let session = editor.new_session(&world);
    let read = json!({ "name": "read_file", "args": { "path": "a.txt" } });
    let work = json!([{ "tools": [read] }, { "tools": [write_note("sub")] }, { "text": "it ran" }]);
    let task = format!("run it {{{{script: {work}}}}}");
    let spawn = json!({ "name": "spawn_agent", "args": { "task": task } });
    let id = editor.script(&session, json!([{ "tools": [spawn] }, { "text": "done" }]));
    // A subagent reads unsaved files of the editor, too.
    let request = editor.incoming("fs/read_text_file");
    assert_eq!(request["params"]["sessionId"], session);
    editor.reply(&request, json!({ "content": "in the buffer" }));
    let request = editor.incoming("session/request_permission");
    assert_eq!(request["params"]["sessionId"], session);
    assert_eq!(request["params"]["toolCall"]["title"], "Write note.txt");
    editor.reply(&request, select(&request, "allow_once"));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(std::fs::read_to_string(world.workspace().join("note.txt")).unwrap(), "sub");
    let listed = editor.call("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    assert!(world.model.calls().iter().any(|call| call.to_string().contains("in the buffer")));
}
