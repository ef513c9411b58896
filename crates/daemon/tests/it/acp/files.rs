//! Files of prompts, and unsaved files of the editor.

use serde_json::json;

use super::editor::Editor;
use crate::daemon::World;

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_prompt_reach_the_model_and_are_replayed() {
    let mut world = World::start("").await;
    world.reconfigure("[approval]", "inputs = [\"image\"]\n[approval]");
    world.terminate();
    world.restart();
    let mut editor = Editor::start(&world);
    let initialized = editor.initialize(json!({}));
    assert_eq!(initialized["agentCapabilities"]["promptCapabilities"]["image"], true);
    let session = editor.new_session(&world);
    let picture = json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" });
    let resource =
        json!({ "uri": "file:///w/notes.md", "mimeType": "text/markdown", "text": "# Notes" });
    let prompt = json!([
        { "type": "text", "text": "look at " },
        { "type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs" },
        picture,
        { "type": "resource", "resource": resource },
    ]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    editor.call("session/prompt", params).unwrap();
    let request = world.model.calls().last().unwrap().to_string();
    for part in ["look at ", "[@a.rs](file:///w/a.rs)", "iVBORw0KGgo=", "# Notes", "notes.md"] {
        assert!(request.contains(part), "{part} is not in {request}");
    }
    let mut other = Editor::ready(&world, json!({}));
    other.load(&world, &session).unwrap();
    let chunks = other.updates("user_message_chunk");
    assert_eq!(chunks.len(), 4, "{chunks:#?}");
    assert_eq!(chunks[2]["content"], picture);
    assert_eq!(chunks[3]["content"]["resource"]["text"], "# Notes");
}

#[tokio::test(flavor = "multi_thread")]
async fn unsaved_files_of_the_editor_are_used_instead_of_the_disk() {
    let world = World::start("").await;
    let path = world.workspace().join("a.txt");
    std::fs::write(&path, "on disk\n").unwrap();
    let mut editor =
        Editor::ready(&world, json!({ "fs": { "readTextFile": true, "writeTextFile": true } }));
    let session = editor.new_session(&world);
    let read = json!({ "name": "read_file", "args": { "path": "a.txt" } });
    let edit = json!({ "name": "edit_file", "args": { "path": "./a.txt", "old": "buffer", "new": "both" } });
    let id = editor
        .script(&session, json!([{ "tools": [read] }, { "tools": [edit] }, { "text": "ok" }]));
    for _ in 0..2 {
        let request = editor.incoming("fs/read_text_file");
        assert_eq!(
            request["params"],
            json!({ "sessionId": session, "path": request["params"]["path"] })
        );
        assert!(request["params"]["path"].as_str().unwrap().ends_with("/a.txt"));
        editor.reply(&request, json!({ "content": "in the buffer\n" }));
    }
    let written = editor.incoming("fs/write_text_file");
    assert_eq!(written["params"]["content"], "in the both\n");
    editor.reply(&written, json!({}));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "in the both\n");
    let request = world.model.calls().last().unwrap().to_string();
    assert!(request.contains("in the buffer") && !request.contains("on disk"), "{request}");
    // An editor that returns an error is ignored, and one without the capability gets no requests.
    let id = editor.script(&session, json!([{ "tools": [read] }, { "text": "ok" }]));
    let request = editor.incoming("fs/read_text_file");
    let error = json!({ "code": -32603, "message": "no such buffer" });
    editor.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
    editor.answer(id).unwrap();
    let mut other = Editor::ready(&world, json!({ "fs": { "writeTextFile": false } }));
    let session = other.new_session(&world);
    let id = other.script(&session, json!([{ "tools": [read] }, { "text": "ok" }]));
    other.answer(id).unwrap();
    assert!(
        !other
            .seen
            .iter()
            .any(|message| message["method"].as_str().unwrap_or_default().starts_with("fs/"))
    );
    assert!(world.model.calls().last().unwrap().to_string().contains("in the both"));
}
