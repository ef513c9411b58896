//! Questions of MCP servers to the user: any client can answer, and they end with their call.

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{NO_APPROVALS, call, outcomes, session_with, stdio, turn};
use crate::acp::editor::Editor;
use crate::client::{Client, Event};
use crate::daemon::{World, until};

/// A world with a server that asks questions, and the file in which it records events.
async fn asking(era: &str) -> (World, NamedTempFile) {
    let note = NamedTempFile::new().unwrap();
    let path = note.path().to_str().unwrap();
    let server = stdio("fix", "", &[("NOTE", path), ("ERA", era)]);
    (World::start(&format!("{NO_APPROVALS}{server}")).await, note)
}

fn script(arguments: Value) -> Value {
    json!([call("fix__ask", arguments), { "text": "done" }])
}

fn is_asked(event: &Event) -> bool {
    event.kind() == "approval_requested" && event.json["data"]["question_of"].is_string()
}

/// The next question of a session.
async fn question(client: &Client, session: &str) -> Value {
    let events = client.until(session, is_asked).await;
    events[events.len() - 1].json["data"].clone()
}

async fn answer(client: &Client, session: &str, question: &Value, content: Value) -> u16 {
    let body = json!({ "tool_call_id": question["tool_call_id"], "action": "approve", "content": content });
    client.post(&format!("/v1/sessions/{session}/approve"), body).await.0
}

/// The answer that the server received, which is the result of its tool.
fn received_answer(results: &[(String, bool, String)]) -> Value {
    assert!(results[0].1, "{results:?}");
    serde_json::from_str(&results[0].2).unwrap()
}

#[tokio::test]
async fn the_first_valid_answer_reaches_the_server() {
    for era in ["", "modern"] {
        let (world, _note) = asking(era).await;
        let client = world.client();
        let id = session_with(&world, "fix__ask").await;
        client.say(&id, script(json!({}))).await;
        let request = question(&client, &id).await;
        assert_eq!(request["input"]["asker"], "the MCP server fix");
        assert_eq!(request["input"]["message"], "Who are you?");
        assert_eq!(request["input"]["schema"]["properties"]["name"]["minLength"], 2);
        let session = client.session(&id).await;
        assert_eq!(session["pending_approvals"][0]["tool_call_id"], request["tool_call_id"]);
        assert_eq!(session["status"], "waiting_approval", "{session}");
        assert_eq!(answer(&client, &id, &request, json!({ "name": 7 })).await, 400);
        let plain = client.approve(&id, request["tool_call_id"].as_str().unwrap(), "approve").await;
        assert_eq!(plain.0, 400, "{plain:?}");
        assert_eq!(answer(&client, &id, &request, json!({ "name": "Ada" })).await, 200);
        assert_eq!(answer(&client, &id, &request, json!({ "name": "Bob" })).await, 409);
        let results = outcomes(&client.until_over(&id).await);
        let content = json!({ "name": "Ada", "colour": "red" });
        assert_eq!(received_answer(&results), json!({ "action": "accept", "content": content }));
    }
}

#[tokio::test]
async fn a_question_can_be_declined_or_have_a_link() {
    let (world, _note) = asking("").await;
    let client = world.client();
    let id = session_with(&world, "fix__ask").await;
    client.say(&id, script(json!({}))).await;
    let request = question(&client, &id).await;
    client.approve(&id, request["tool_call_id"].as_str().unwrap(), "deny").await;
    assert_eq!(
        received_answer(&outcomes(&client.until_over(&id).await)),
        json!({ "action": "decline" })
    );
    let id = session_with(&world, "fix__ask").await;
    client.say(&id, script(json!({ "link": true }))).await;
    let request = question(&client, &id).await;
    assert_eq!(request["input"]["url"], "https://a.example/login");
    client.approve(&id, request["tool_call_id"].as_str().unwrap(), "approve").await;
    let results = outcomes(&client.until_over(&id).await);
    assert_eq!(received_answer(&results)["action"], "accept");
}

#[tokio::test]
async fn cancelling_a_turn_cancels_its_question() {
    let (world, note) = asking("").await;
    let client = world.client();
    let id = session_with(&world, "fix__ask").await;
    client.say(&id, script(json!({}))).await;
    let request = question(&client, &id).await;
    client.post(&format!("/v1/sessions/{id}/cancel"), json!({})).await;
    client.until_over(&id).await;
    assert_eq!(answer(&client, &id, &request, json!({ "name": "Ada" })).await, 409);
    let answered = || std::fs::read_to_string(note.path()).unwrap();
    until("the server is notified", async || answered().contains(r#"{"action": "cancel"}"#)).await;
    // The server still works: its next question is sent.
    client.say(&id, script(json!({}))).await;
    let events = client.until(&id, |event| {
        is_asked(event) && event.json["data"]["tool_call_id"] != request["tool_call_id"]
    });
    let request = events.await.pop().unwrap().json["data"].clone();
    assert_eq!(answer(&client, &id, &request, json!({ "name": "Ada" })).await, 200);
}

#[tokio::test]
async fn a_restart_closes_a_question() {
    let (mut world, _note) = asking("").await;
    let id = session_with(&world, "fix__ask").await;
    let client = world.client();
    client.say(&id, script(json!({}))).await;
    let request = question(&client, &id).await;
    world.kill();
    world.restart();
    let client = world.client();
    let results = outcomes(&client.until_over(&id).await);
    assert!(results.len() == 1 && !results[0].1, "{results:?}");
    let closed = client.history(&id).await;
    let closed = closed.iter().find(|event| event["type"] == "approval_denied").unwrap();
    assert_eq!(closed["data"]["tool_call_id"], request["tool_call_id"]);
    assert_eq!(closed["data"]["by"], "call_ended");
    assert_eq!(answer(&client, &id, &request, json!({ "name": "Ada" })).await, 409);
}

#[tokio::test]
async fn a_question_is_declined_if_no_user_can_answer() {
    let (world, _note) = asking("").await;
    session_with(&world, "fix__ask").await;
    let text = format!("go {{{{script: {}}}}}", script(json!({})));
    let body = json!({ "model": "quintet/fake/fake", "input": text });
    let client = world.openai();
    let request = client.request(Method::POST, "/v1/responses");
    let response = request.header("authorization", "Bearer anything").body(body.to_string());
    assert_eq!(response.send().await.unwrap().status(), 200);
    let last = world.model.calls().last().unwrap().to_string();
    assert!(last.contains(r#"\"action\": \"decline\""#), "{last}");
}

#[tokio::test]
async fn a_question_of_a_subagent_is_answered_at_the_parent() {
    let (world, _note) = asking("").await;
    let client = world.client();
    let id = session_with(&world, "fix__ask").await;
    let work = json!([call("fix__ask", json!({})), { "text": "it asked" }]);
    let task = format!("ask {{{{script: {work}}}}}");
    let script = json!([call("spawn_agent", json!({ "task": task })), { "text": "done" }]);
    // A nested script is that of the subagent.
    let script = script.to_string().replace("{{script:", "\\u007b{script:");
    let part = json!({ "type": "text", "text": format!("go {{{{script: {script}}}}}") });
    let body = json!({ "role": "user", "parts": [part], "auto_run": true });
    assert_eq!(client.post(&format!("/v1/sessions/{id}/messages"), body).await.0, 200);
    let events = client.until(&id, |event| event.kind() == "subagent_approval_requested").await;
    let request = &events[events.len() - 1].json["data"];
    assert_eq!(request["args"]["message"], "Who are you?");
    let question = json!({ "tool_call_id": request["subagent_tool_call_id"] });
    assert_eq!(answer(&client, &id, &question, json!({ "name": "Ada" })).await, 200);
    client.until_over(&id).await;
    let was_answered =
        world.model.calls().iter().any(|call| call.to_string().contains(r#"\"name\": \"Ada\""#));
    assert!(was_answered, "the server of the subagent was not answered");
}

#[tokio::test]
async fn a_server_used_by_several_sessions_asks_none_of_them() {
    let (world, note) = asking("").await;
    let client = world.client();
    let id = session_with(&world, "fix__wait").await;
    client.say(&id, json!([call("fix__wait", json!({})), { "text": "on" }])).await;
    let waits = || std::fs::read_to_string(note.path()).unwrap().contains("waiting");
    until("the other session's call runs", async || waits()).await;
    let other = session_with(&world, "fix__ask").await;
    let results = turn(&client, &other, script(json!({}))).await;
    assert_eq!(received_answer(&results), json!({ "action": "decline" }));
    client.post(&format!("/v1/sessions/{id}/cancel"), json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_shows_a_form_or_the_possible_answers() {
    let (world, _note) = asking("").await;
    session_with(&world, "fix__ask").await;
    let forms = json!({ "elicitation": { "form": {} } });
    let mut editor = Editor::ready(&world, forms);
    let session = editor.new_session(&world);
    let id = editor.script(&session, script(json!({})));
    let request = editor.incoming("elicitation/create");
    assert_eq!(request["params"]["mode"], "form");
    assert_eq!(request["params"]["requestedSchema"]["required"], json!(["name"]));
    // An invalid answer leads to another request.
    editor.reply(&request, json!({ "action": "accept", "content": { "name": "A" } }));
    let request = editor.incoming("elicitation/create");
    let message = request["params"]["message"].as_str().unwrap();
    assert!(message.contains("`name` must be at least 2 characters"), "{message}");
    editor.reply(&request, json!({ "action": "accept", "content": { "name": "Ada" } }));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    let seen = json!(editor.updates("tool_call_update")).to_string();
    assert!(seen.contains(r#"\"name\": \"Ada\""#), "{seen}");

    // This editor shows no links, so the question becomes a permission request.
    let id = editor.script(&session, script(json!({ "link": true })));
    let request = editor.incoming("session/request_permission");
    let options = request["params"]["options"].as_array().unwrap();
    let names: Vec<_> = options.iter().map(|option| option["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Accept", "Decline"]);
    assert!(request.to_string().contains("https://a.example/login"), "{request}");
    let outcome = json!({ "outcome": "selected", "optionId": options[0]["optionId"] });
    editor.reply(&request, json!({ "outcome": outcome }));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    let seen = json!(editor.updates("tool_call_update")).to_string();
    assert!(seen.contains(r#"{\"action\": \"accept\""#), "{seen}");
}
