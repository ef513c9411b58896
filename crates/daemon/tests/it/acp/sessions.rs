//! Sessions: list, load, resume, close, and their settings.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::daemon::World;

/// The messages that an editor received, without times, and with their pieces joined.
fn transcript(editor: &Editor) -> Vec<(String, String)> {
    let mut messages: Vec<(String, String)> = Vec::new();
    for message in &editor.seen {
        let update = &message["params"]["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if !kind.ends_with("_chunk") {
            continue;
        }
        let text = update["content"]["text"].as_str().unwrap_or("(file)");
        let of = format!("{kind} {}", update["messageId"]);
        match messages.last_mut() {
            Some((last, joined)) if *last == of => joined.push_str(text),
            Some(_) | None => messages.push((of, text.to_owned())),
        }
    }
    messages
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_editor_gets_the_same_bytes_again() {
    let mut world = World::start("").await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let shell = json!({ "name": "shell", "args": { "command": "echo out" } });
    let first = editor.script(
        &session,
        json!([{ "thought": "let me", "text": "First ", "tools": [shell] }, { "deltas": ["dön", "e"] }]),
    );
    editor.answer(first).unwrap();
    editor.script(
        &session,
        json!([{ "deltas": ["half", " an", " ans"], "gap_ms": 5, "hang": true }]),
    );
    editor.until(|message| message["params"]["update"]["content"]["text"] == " ans");
    let before = transcript(&editor);
    editor.kill();
    let mut second = Editor::ready(&world, json!({}));
    let opened = second.load(&world, &session).unwrap();
    assert_eq!(opened["modes"]["currentModeId"], "default");
    second.until(|message| message.to_string().contains("available_commands_update"));
    let after: Vec<_> = transcript(&second);
    let without_user: Vec<_> =
        after.iter().filter(|(of, _)| !of.starts_with("user")).cloned().collect();
    assert_eq!(without_user, before);
    let users: Vec<_> = after.iter().filter(|(of, _)| of.starts_with("user")).collect();
    assert!(users.len() == 2 && users[0].1.starts_with("go {{script:"), "{users:?}");
    // A call is one update with its result.
    let calls = second.updates("tool_call");
    assert_eq!((calls.len(), &calls[0]["status"]), (1, &json!("completed")));
    assert_eq!((&calls[0]["title"], &calls[0]["kind"]), (&json!("echo out"), &json!("execute")));
    assert_eq!(calls[0]["rawInput"], json!({ "command": "echo out" }));
    assert_eq!(calls[0]["content"][0]["content"]["text"], "out\n");
    assert!(second.updates("tool_call_update").is_empty());
    // The same holds after the daemon was killed, which then continues the turn.
    world.kill();
    second.wait();
    world.restart();
    let mut third = Editor::ready(&world, json!({}));
    third.load(&world, &session).unwrap();
    let again: Vec<_> = transcript(&third);
    assert_eq!(again[..after.len()], after[..]);
    third.notify("session/cancel", json!({ "sessionId": session }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_is_not_replayed_and_continues() {
    let world = World::start("").await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let first = editor.script(&session, json!([{ "text": "old" }]));
    editor.answer(first).unwrap();
    let listed = editor.call("session/list", json!({ "cwd": world.workspace() })).unwrap();
    let row = &listed["sessions"][0];
    assert_eq!((&row["sessionId"], &row["cwd"]), (&json!(session), &json!(world.workspace())));
    assert!(row["title"].as_str().unwrap().starts_with("go "), "{row}");
    let elsewhere = editor.call("session/list", json!({ "cwd": "/nowhere" })).unwrap();
    assert_eq!(elsewhere, json!({ "sessions": [] }));
    let mut other = Editor::ready(&world, json!({}));
    let params = json!({ "sessionId": session, "cwd": world.workspace(), "mcpServers": [] });
    other.call("session/resume", params).unwrap();
    let id = other.script(&session, json!([{ "text": "new" }]));
    other.answer(id).unwrap();
    assert_eq!(other.text("agent_message_chunk"), "new");
    // The first editor is sent the message of the second.
    editor.until(|message| message["params"]["update"]["content"]["text"] == "new");
    assert!(editor.text("user_message_chunk").starts_with("go "));
    let running = editor.script(&session, json!([{ "text": "x", "hang": true }]));
    editor.until(|message| message["params"]["update"]["content"]["text"] == "x");
    assert_eq!(editor.call("session/close", json!({ "sessionId": session })), Ok(json!({})));
    let answers: Vec<_> = editor.seen.iter().filter(|message| message["id"] == running).collect();
    assert_eq!((answers.len(), &answers[0]["result"]["stopReason"]), (1, &json!("cancelled")));
    world.model.streaming(0).await;
    assert_eq!(editor.call("session/delete", json!({ "sessionId": session })), Ok(json!({})));
    assert_eq!(editor.load(&world, &session).unwrap_err()["code"], -32002);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_approval_mode_can_be_set_as_mode_and_as_option() {
    let world = World::start("").await;
    let mut editor = Editor::ready(&world, json!({}));
    let params = json!({ "cwd": world.workspace() });
    let opened = editor.call("session/new", params).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(opened["modes"]["currentModeId"], "default");
    let option = |options: &Value, id: &str| {
        let all = options["configOptions"].as_array().unwrap();
        all.iter().find(|option| option["id"] == id).unwrap()["currentValue"].clone()
    };
    assert_eq!(
        (option(&opened, "mode"), option(&opened, "model")),
        (json!("default"), json!("fake/fake"))
    );
    let set =
        |value: &str, id: &str| json!({ "sessionId": session, "configId": id, "value": value });
    let strict = editor.call("session/set_config_option", set("strict", "mode")).unwrap();
    assert_eq!(option(&strict, "mode"), "strict");
    editor.until(|message| message["params"]["update"]["currentModeId"] == "strict");
    let note = json!({ "name": "write_file", "args": { "path": "n", "content": "x" } });
    let id = editor.script(&session, json!([{ "tools": [note] }, { "text": "ok" }]));
    let request = editor.incoming("session/request_permission");
    editor.reply(&request, super::select(&request, "reject_once"));
    editor.answer(id).unwrap();
    let mode = json!({ "sessionId": session, "modeId": "auto" });
    assert_eq!(editor.call("session/set_mode", mode), Ok(json!({})));
    let id = editor.script(&session, json!([{ "tools": [note] }, { "text": "ok" }]));
    editor.answer(id).unwrap();
    assert!(world.workspace().join("n").exists());
    assert_eq!(
        editor.call("session/set_config_option", set("x/y", "model")).unwrap_err()["code"],
        -32602
    );
    assert_eq!(
        editor.call("session/set_config_option", set("x", "mode")).unwrap_err()["code"],
        -32602
    );
    // The settings apply to the next editor, too.
    let mut other = Editor::ready(&world, json!({}));
    assert_eq!(option(&other.load(&world, &session).unwrap(), "mode"), "auto");
    // Slash commands.
    let id = editor.prompt(&session, "/undo");
    editor.answer(id).unwrap();
    assert!(!world.workspace().join("n").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_the_editors_servers_are_offered() {
    let world = World::start("[approval]\nkinds = []\n[verify]\nauto = false\n").await;
    let mut editor = Editor::ready(&world, json!({}));
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let server = json!({ "name": "mine", "command": "python3", "args": [fixture], "env": [] });
    let params = json!({ "cwd": world.workspace(), "mcpServers": [server] });
    let opened = editor.call("session/new", params).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    // A server that is slow to start may miss the first turns.
    crate::daemon::until("the tools are offered", async || {
        let prompt = editor.script(&session, json!([{ "text": "ok" }]));
        editor.answer(prompt).unwrap();
        let calls = world.model.calls();
        calls.last().is_some_and(|call| call["tools"].to_string().contains("\"mine__"))
    })
    .await;
}
