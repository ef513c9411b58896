//! Queries over the WebSocket, as the original client sends them and hears of them.

mod away;
mod history;
mod tools;
mod users;

use serde_json::{Value, json};

use crate::computer::{Computer, first, kinds, text};
use crate::daemon::World;

/// What the original client says of an agent with one tool of its own.
fn own_tool() -> Value {
    json!({
        "version": 1,
        "id": "agent-1",
        "name": "Agent",
        "system_prompt": { "mode": "replace", "content": "You take notes." },
        "tools": { "mode": "client_only", "client_manifest": { "version": 1, "tools": [{
            "name": "save_note",
            "description": "Save",
            "execution_target": "local_runtime",
            "argument_resolution": "passthrough",
            "schema": {
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
            },
        }] } },
        "skills": [],
        "plugins": [],
        "runtime": { "operating_system": "Linux" },
        "metadata": { "client_capability_revision": "cap_1" },
    })
}

fn handshake(user: &str) -> Value {
    json!({ "type": "handshake", "user_id": user, "agent_definition": own_tool() })
}

fn note(text: &str) -> Value {
    json!({ "name": "save_note", "args": { "text": text } })
}

fn done(request: &Value, output: &str) -> Value {
    json!({ "request_id": request, "success": true, "data": { "output": output } })
}

#[tokio::test]
async fn a_query_is_accepted_shown_answered_and_over_once() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    let hello = computer.until("remote-tool-catalog").await;
    assert_eq!(kinds(&hello), ["client-tool-manifest", "remote-tool-catalog"]);
    assert_eq!(hello[0]["payload"]["accepted"][0]["name"], "save_note");
    assert_eq!(hello[0]["payload"]["rejected"], json!([]));
    assert_eq!(hello[1]["payload"]["remote_tools"][0]["name"], "web_search");
    assert!(hello[1].get("id").is_none());
    let script = json!([{ "deltas": ["Hel", "lo"], "thought": "hm", "usage": [11, 7] }]);
    let id = computer.query("c1", script).await;
    let told = computer.until("streaming-complete").await;
    let order = kinds(&told);
    let shown = ["query-accepted", "system-prompt", "user-message-full", "tool-schemas"];
    assert_eq!(order[..4], shown);
    assert_eq!(text(&told), "Hello");
    for kind in ["llm-thought", "assistant-message-full", "token-count"] {
        assert!(order.contains(&kind), "{kind}: {order:?}");
    }
    assert_eq!(first(&told, "streaming-complete")["payload"]["final_response"], "Hello");
    assert!(told.iter().all(|frame| frame["turn_ref"] == *id && frame["id"] == *id));
    assert!(told.iter().all(|frame| frame["conversation_ref"] == "c1" && frame["user_id"] == "u"));
    let tokens = &first(&told, "token-count")["payload"];
    assert_eq!((&tokens["prompt_tokens"], &tokens["total_tokens"]), (&json!(11), &json!(18)));
    assert_eq!(tokens["usage_source"], "provider");
    // What was shown is what was sent.
    let asked = &world.model.calls()[0];
    let system = asked["messages"][0]["content"].as_str().unwrap();
    assert_eq!(first(&told, "system-prompt")["payload"]["content"], system);
    assert!(system.starts_with("You take notes."));
    let tools = asked["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    let schemas = first(&told, "tool-schemas")["payload"]["tool_schemas"].as_array().unwrap();
    assert_eq!(schemas[0]["function"]["name"], "save_note");
}

#[tokio::test]
async fn the_wording_of_the_client_is_what_the_model_reads() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let content = "<episodic_memory>\nNone\n</episodic_memory>\n\n<user_query>\nhi\n</user_query>";
    let payload = json!({ "text": " hi ", "conversation_ref": "c1", "content": content });
    computer.send("query", payload).await;
    let told = computer.until("streaming-complete").await;
    assert_eq!(first(&told, "user-message-full")["payload"]["content"], content);
    let metadata = &first(&told, "user-message-full")["payload"]["metadata"];
    assert_eq!(metadata["original_query"], "hi");
    assert_eq!(text(&told), format!("echo: {content}"));
    // In another protocol the user said what he said.
    let session = told[0]["session_id"].as_str().unwrap();
    let shown = world.client().session(session).await;
    assert_eq!(shown["messages"][0]["parts"][0]["text"], "hi");
}

#[tokio::test]
async fn a_query_is_stopped_also_before_it_comes() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let id = computer.query("c1", json!([{ "text": "so", "hang": true }])).await;
    computer.until("streaming-response").await;
    computer.stop("c1", &id).await;
    let mut told = computer.until("streaming-complete").await;
    if !kinds(&told).contains(&"stop-query-ack") {
        told.extend(computer.until("stop-query-ack").await);
    }
    let ack = &first(&told, "stop-query-ack")["payload"];
    assert_eq!((&ack["status"], &ack["canceled"]), (&json!("stopped"), &json!(true)));
    assert_eq!(first(&told, "streaming-complete")["turn_ref"], id.as_str());
    // Too late is too late: the next query is not meant.
    computer.send("stop-query", json!({ "conversation_ref": "c1", "turn_ref": null })).await;
    let ack = computer.until("stop-query-ack").await.pop().unwrap();
    assert_eq!(ack["payload"]["status"], "not-running");
    assert_eq!(text(&computer.turn("c1", json!([{ "text": "on" }])).await), "on");
    // Too early is not.
    computer.send("stop-query", json!({ "conversation_ref": "c2", "turn_ref": null })).await;
    let ack = computer.until("stop-query-ack").await.pop().unwrap();
    assert_eq!(ack["payload"]["canceled"], false);
    computer.query("c2", json!([{ "text": "never", "delay_ms": 60000 }])).await;
    let told = computer.until("streaming-complete").await;
    assert_eq!(text(&told), "");
}

#[tokio::test]
async fn a_client_misses_nothing_of_what_it_stopped_in_full_flow() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    let flow = json!([{ "deltas": ["a "], "repeat": 1000, "gap_ms": 5 }]);
    let id = computer.query("c1", flow).await;
    computer.until("streaming-response").await;
    computer.stop("c1", &id).await;
    let end = computer.until("streaming-complete").await.pop().unwrap();
    assert_eq!((&end["turn_ref"], &end["conversation_ref"]), (&json!(id), &json!("c1")));
    assert_eq!(text(&computer.turn("c1", json!([{ "text": "on" }])).await), "on");
}

#[tokio::test]
async fn tools_settings_and_stops_get_through_while_queries_wait() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    for n in 0..4 {
        computer.query(&format!("c{n}"), json!([{ "text": "so", "hang": true }])).await;
        computer.until("streaming-response").await;
    }
    computer.query("c5", json!([{ "text": "too much" }])).await;
    let error = computer.until("error").await.pop().unwrap();
    assert_eq!(error["payload"]["message"], "Too many concurrent requests. Please wait.");
    assert_eq!(error["conversation_ref"], "c5");
    computer.send("update-settings", json!({ "interaction_mode": "chat" })).await;
    let updated = computer.until("settings-updated").await.pop().unwrap();
    assert_eq!(updated["payload"]["updated_keys"], json!(["interaction_mode"]));
    computer.stop_all().await;
    for _ in 0..4 {
        computer.until("streaming-complete").await;
    }
    assert_eq!(text(&computer.turn("c5", json!([{ "text": "now" }])).await), "now");
}

#[tokio::test]
async fn bad_handshakes_are_hung_up_on() {
    let world = World::start("").await;
    for bad in [
        json!({ "type": "handshake" }),
        json!({ "type": "handshake", "user_id": " " }),
        json!({ "type": "handshake", "user_id": "default_user" }),
        json!({ "type": "hello", "user_id": "u" }),
        json!({ "type": "handshake", "user_id": "u", "operating_system": "macOS" }),
        json!({ "type": "handshake", "user_id": "u", "available_tools": [] }),
        json!({ "type": "handshake", "user_id": "u", "agent_definition": { "version": 2 } }),
        json!([1]),
    ] {
        let mut computer = Computer::reach(world.windie(), None, &bad).await;
        assert_eq!(computer.close_code().await, 1008, "{bad}");
    }
}

#[tokio::test]
async fn bad_messages_are_answered_and_the_connection_stays() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(11 * 1024 * 1024));
    let size = large.len();
    let too_large = format!("Message too large: {size} bytes (max: 10485760 bytes)");
    for (bad, why) in [
        ("{", "Malformed JSON"),
        ("[]", "Invalid message format: root must be an object, got list"),
        (&large, &too_large),
        (r#"{"id":"a b","type":"load-settings","payload":{}}"#, "Invalid message format: id: "),
        (
            r#"{"id":"a","type":"load-settings","payload":{},"more":1}"#,
            "Invalid message format: more: ",
        ),
        (
            r#"{"id":"a","type":"query","payload":{"text":" ","conversation_ref":"c"}}"#,
            "Invalid query: Query text cannot be empty",
        ),
        (r#"{"id":"a","type":"nothing","payload":{}}"#, "Invalid message format: type: "),
    ] {
        computer.say(bad).await;
        let error = computer.until("error").await.pop().unwrap();
        let message = error["payload"]["message"].as_str().unwrap();
        assert!(message.starts_with(why), "{message}");
    }
    assert_eq!(text(&computer.turn("c", json!([{ "text": "still here" }])).await), "still here");
}

#[tokio::test]
async fn what_is_sent_is_shown_also_where_the_workspace_is_not_looked_at() {
    let quiet = "[approval]\nkinds = []\n[verify]\nauto = false\n[context]\ntokens = 0\n[memory]\nenabled = false\n";
    let world = World::start(quiet).await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let told = computer.turn("c", json!([{ "text": "hi" }])).await;
    let shown = ["query-accepted", "system-prompt", "user-message-full", "tool-schemas"];
    assert_eq!(kinds(&told)[..4], shown);
}

#[tokio::test]
async fn clients_that_begin_a_conversation_together_share_it() {
    let world = World::start("").await;
    for round in 0..4 {
        // Clients without a name hear all that their user's other clients began: one user a round.
        let (user, mut computers) = (format!("u{round}"), Vec::new());
        for _ in 0..6 {
            computers.push(Computer::connect(world.windie(), &user, json!(null)).await);
        }
        let conversation = format!("c{round}");
        let asked = computers.iter_mut().enumerate().map(async |(n, computer)| {
            let (id, text) = (format!("q{round}-{n}"), "go {{script: [{\"text\":\"ok\"}]}}");
            let payload = json!({ "text": text, "conversation_ref": conversation });
            let query = json!({ "id": id, "type": "query", "payload": payload, "user_id": user });
            computer.say(&query.to_string()).await;
            // Of the conversation before it, a client may not have seen the end.
            loop {
                let accepted = computer.until("query-accepted").await.pop().unwrap();
                if accepted["conversation_ref"] == *conversation {
                    break accepted["session_id"].clone();
                }
            }
        });
        let sessions = futures_util::future::join_all(asked).await;
        let one = sessions.iter().all(|session| *session == sessions[0]);
        assert!(one && sessions[0].is_string(), "{sessions:?}");
    }
}
