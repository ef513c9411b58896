//! Prompts of MCP servers as commands in editors and terminals.

use serde_json::{Value, json};

use super::{NO_APPROVALS, call, stdio};
use crate::acp::editor::Editor;
use crate::chat::{run, text};
use crate::daemon::{World, until};

fn commands(update: &Value) -> Vec<&str> {
    let listed = update["params"]["update"]["availableCommands"].as_array();
    listed.into_iter().flatten().filter_map(|command| command["name"].as_str()).collect()
}

fn last_message(world: &World) -> String {
    let call = world.model.calls().pop().unwrap();
    let messages = call["messages"].as_array().unwrap();
    let last = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    last["content"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_lists_prompts_as_commands_and_sends_them() {
    for era in ["", "modern"] {
        let config = format!("{NO_APPROVALS}{}", stdio("fix", "", &[("ERA", era)]));
        let config = config.replace("[approval]", "inputs = [\"image\"]\n[approval]");
        let world = World::start(&config).await;
        let mut editor = Editor::ready(&world, json!({}));
        let session = editor.new_session(&world);
        let is_known = editor.seen.iter().any(|update| commands(update).contains(&"fix:ask"));
        if !is_known {
            editor.until(|update| commands(update).contains(&"fix:ask"));
        }
        let update = editor.updates("available_commands_update").pop().unwrap();
        let listed = update["availableCommands"].as_array().unwrap();
        let command = listed.iter().find(|command| command["name"] == "fix:ask").unwrap();
        assert_eq!(command["input"], json!({ "hint": "what" }));
        let id = editor.prompt(&session, "/fix:ask {{script: [{ \"text\": \"well\" }]}}");
        assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
        assert_eq!(editor.text("agent_message_chunk"), "well");
        assert!(last_message(&world).contains("From the server: {{script:"));
        let id = editor.prompt(&session, "/fix:ask");
        let refused = editor.answer(id).unwrap_err();
        assert_eq!(refused["message"], "/fix:ask: it needs what");
        let id = editor.prompt(&session, "/fix:plain {{script: [{ \"text\": \"seen\" }]}}");
        editor.answer(id).unwrap();
        let sent = last_message(&world);
        assert!(sent.contains("This is plain.") && sent.contains("data:image/png"), "{sent}");
        // An unknown prompt is sent as text.
        let id = editor.prompt(&session, "/fix:none {{script: [{ \"text\": \"ok\" }]}}");
        editor.answer(id).unwrap();
        assert!(last_message(&world).contains("/fix:none"));
        if era.is_empty() {
            editor.script(&session, json!([call("fix__grow", json!({})), { "text": "done" }]));
            editor.until(|update| commands(update).contains(&"fix:grown"));
        }
    }
}

#[tokio::test]
async fn a_terminal_sends_a_prompt() {
    let world = World::start(&format!("{NO_APPROVALS}{}", stdio("fix", "", &[]))).await;
    // The server may still be starting; then the prompt is not known yet.
    until("the prompt is known", async || {
        let line = "/fix:ask {{script: [{ \"text\": \"well\" }]}}";
        let output = run(&world, line, &[]).await;
        assert_eq!(text(&output.stdout).trim_end(), "well");
        last_message(&world).contains("From the server: ")
    })
    .await;
    let output = run(&world, "/fix:ask", &[]).await;
    assert!(text(&output.stderr).contains("/fix:ask: it needs what"), "{}", text(&output.stderr));
}
