//! Questions to the person at the editor.

use serde_json::{Value, json};

use super::editor::Editor;
use super::{ASKING, select};
use crate::daemon::World;

fn write_note(content: &str) -> Value {
    json!({ "name": "write_file", "args": { "path": "note.txt", "content": content } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_carries_the_diff_and_its_own_options() {
    let world = World::start(ASKING).await;
    std::fs::write(world.workspace().join("note.txt"), "one\ntwo\n").unwrap();
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let edit =
        json!({ "name": "edit_file", "args": { "path": "note.txt", "old": "two", "new": "2" } });
    let script = json!([{ "tools": [edit] }, { "tools": [write_note("all\n")] }, { "text": "ok" }]);
    let id = editor.script(&session, script);
    let first = editor.asked("session/request_permission");
    let call = &first["params"]["toolCall"];
    let shown = editor.updates("tool_call");
    assert_eq!(shown[0]["toolCallId"], call["toolCallId"], "the call is known before");
    assert_eq!((&shown[0]["kind"], &shown[0]["status"]), (&json!("edit"), &json!("pending")));
    assert_eq!((&call["title"], &call["status"]), (&json!("Edit note.txt"), &json!("pending")));
    let path = world.workspace().join("note.txt");
    let diff =
        json!({ "type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\n2\n" });
    assert_eq!(call["content"][0], diff);
    assert_eq!(call["locations"], json!([{ "path": path }]));
    editor.reply(&first, select(&first, "allow_once"));
    let second = editor.asked("session/request_permission");
    for option in second["params"]["options"].as_array().unwrap() {
        let others = first["params"]["options"].as_array().unwrap();
        assert!(others.iter().all(|other| other["optionId"] != option["optionId"]));
    }
    // An option of the first question approves nothing else.
    editor.reply(&second, select(&first, "allow_once"));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n2\n");
    let ends: Vec<_> = editor.updates("tool_call_update");
    let ends: Vec<_> = ends.iter().filter(|update| update.get("rawOutput").is_some()).collect();
    assert_eq!((&ends[0]["status"], &ends[1]["status"]), (&json!("completed"), &json!("failed")));
    assert_eq!(ends[0]["content"], json!([diff]));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_client_may_answer_and_the_editor_is_told() {
    let world = World::start(ASKING).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let id = editor.script(&session, json!([{ "tools": [write_note("x")] }, { "text": "ok" }]));
    let asked = editor.asked("session/request_permission");
    let call = asked["params"]["toolCall"]["toolCallId"].as_str().unwrap().to_owned();
    let client = world.client();
    assert_eq!(client.approve(&session, &call, "approve").await.0, 200);
    let told = editor.until(|message| message["method"] == "$/cancel_request");
    assert_eq!(told["params"]["requestId"], asked["id"]);
    // What the editor answers now is too late to count.
    editor.reply(&asked, select(&asked, "reject_once"));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(std::fs::read_to_string(world.workspace().join("note.txt")).unwrap(), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_outlives_the_editor_and_the_daemon() {
    let mut world = World::start(ASKING).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    editor.script(&session, json!([{ "tools": [write_note("x")] }, { "text": "ok" }]));
    let asked = editor.asked("session/request_permission");
    editor.kill();
    world.kill();
    world.restart();
    let mut editor = Editor::ready(&world, json!({}));
    editor.load(&world, &session).unwrap();
    let again = editor.asked("session/request_permission");
    assert_eq!(again["params"]["toolCall"], asked["params"]["toolCall"]);
    editor.reply(&again, select(&again, "allow_once"));
    editor.until(|message| message["params"]["update"]["content"]["text"] == "ok");
    assert_eq!(std::fs::read_to_string(world.workspace().join("note.txt")).unwrap(), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_does_not_wait_for_an_answer() {
    let world = World::start(ASKING).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let id = editor.script(&session, json!([{ "tools": [write_note("x")] }, { "text": "ok" }]));
    let asked = editor.asked("session/request_permission");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "cancelled" })));
    editor.reply(&asked, json!({ "outcome": { "outcome": "cancelled" } }));
    let next = editor.script(&session, json!([{ "text": "and on" }]));
    assert_eq!(editor.answer(next), Ok(json!({ "stopReason": "end_turn" })));
    assert!(!world.workspace().join("note.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_neither_a_yes_nor_a_no() {
    let world = World::start(ASKING).await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let id = editor.script(&session, json!([{ "tools": [write_note("x")] }, { "text": "ok" }]));
    let asked = editor.asked("session/request_permission");
    let error = json!({ "code": -32603, "message": "no dialog" });
    editor.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }));
    let told = editor
        .until(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    assert!(told.to_string().contains("no dialog"), "{told}");
    let call = asked["params"]["toolCall"]["toolCallId"].as_str().unwrap().to_owned();
    assert_eq!(world.client().approve(&session, &call, "deny").await.0, 200);
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert!(!world.workspace().join("note.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_subagent_is_asked_under_the_session_that_the_editor_knows() {
    let world = World::start(ASKING).await;
    std::fs::write(world.workspace().join("a.txt"), "on disk").unwrap();
    let mut editor = Editor::ready(&world, json!({ "fs": { "readTextFile": true } }));
    let session = editor.new_session(&world);
    let read = json!({ "name": "read_file", "args": { "path": "a.txt" } });
    let work = json!([{ "tools": [read] }, { "tools": [write_note("sub")] }, { "text": "it ran" }]);
    let task = format!("run it {{{{script: {work}}}}}");
    let spawn = json!({ "name": "spawn_agent", "args": { "task": task } });
    let id = editor.script(&session, json!([{ "tools": [spawn] }, { "text": "done" }]));
    // A subagent sees what the editor has, too.
    let asked = editor.asked("fs/read_text_file");
    assert_eq!(asked["params"]["sessionId"], session);
    editor.reply(&asked, json!({ "content": "in the buffer" }));
    let asked = editor.asked("session/request_permission");
    assert_eq!(asked["params"]["sessionId"], session);
    assert_eq!(asked["params"]["toolCall"]["title"], "Write note.txt");
    editor.reply(&asked, select(&asked, "allow_once"));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(std::fs::read_to_string(world.workspace().join("note.txt")).unwrap(), "sub");
    let listed = editor.call("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    assert!(world.model.calls().iter().any(|call| call.to_string().contains("in the buffer")));
}
