//! Files: pictures and documents that come with a prompt.

use serde_json::json;

use super::editor::Editor;
use crate::daemon::World;

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_with_a_prompt_reaches_the_model_and_comes_back() {
    let mut world = World::start("").await;
    world.reconfigure("[approval]", "inputs = [\"image\"]\n[approval]");
    world.terminate();
    world.restart();
    let mut editor = Editor::start(&world);
    let introduced = editor.initialize(json!({}));
    assert_eq!(introduced["agentCapabilities"]["promptCapabilities"]["image"], true);
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
    let asked = world.model.calls().last().unwrap().to_string();
    for part in ["look at ", "[@a.rs](file:///w/a.rs)", "iVBORw0KGgo=", "# Notes", "notes.md"] {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
    let mut other = Editor::ready(&world, json!({}));
    other.load(&world, &session).unwrap();
    let chunks = other.updates("user_message_chunk");
    assert_eq!(chunks.len(), 4, "{chunks:#?}");
    assert_eq!(chunks[2]["content"], picture);
    assert_eq!(chunks[3]["content"]["resource"]["text"], "# Notes");
}
