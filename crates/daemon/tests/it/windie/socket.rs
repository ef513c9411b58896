//! Queries over the WebSocket, as the original client sends them and hears of them.

use serde_json::{Value, json};

use super::{AUTH, Guest};
use crate::computer::{Computer, first, kinds, text};
use crate::daemon::{World, quintet};

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
async fn the_client_runs_its_tools() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.query("c1", json!([{ "tools": [note("milk")] }, { "text": "noted" }])).await;
    let told = computer.until("tool-call").await;
    let call = &first(&told, "tool-call")["payload"];
    assert_eq!(
        (&call["tool_name"], &call["parameters"]["text"]),
        (&json!("save_note"), &json!("milk"))
    );
    assert!(call["metadata"]["tool_call_id"].is_string());
    assert!(call["metadata"].get("skip_local_execution").is_none());
    // Somebody else's word, or one on another call, is not waited for.
    let mut other = Computer::reach(world.windie(), None, &handshake("v")).await;
    other.until("remote-tool-catalog").await;
    other.send("tool-result", done(&call["request_id"], "mine")).await;
    other.send("load-settings", json!({})).await;
    other.until("settings-loaded").await;
    computer.send("tool-result", done(&json!("req-unknown"), "lost")).await;
    computer.send("tool-result", done(&call["request_id"], "saved milk")).await;
    let told = computer.until("streaming-complete").await;
    let output = &first(&told, "tool-output")["payload"];
    assert_eq!((&output["output"], &output["success"]), (&json!("saved milk"), &json!(true)));
    assert_eq!(text(&told), "noted");
    // A result that comes again changes nothing.
    computer.send("tool-result", done(&call["request_id"], "again")).await;
    assert_eq!(text(&computer.turn("c1", json!([{ "text": "next" }])).await), "next");
}

#[tokio::test]
async fn several_calls_of_a_step_are_one_bundle() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    let script = json!([{ "tools": [note("a"), note("b"), note("c")] }, { "text": "noted" }]);
    computer.query("c1", script).await;
    let told = computer.until("tool-bundle").await;
    let bundle = &first(&told, "tool-bundle")["payload"];
    assert!(!kinds(&told).contains(&"tool-call"));
    let args: Vec<&Value> =
        bundle["tools"].as_array().unwrap().iter().map(|tool| &tool["args"]["text"]).collect();
    assert_eq!(args, ["a", "b", "c"]);
    let steps = json!([
        { "tool": "save_note", "status": "ok", "output": "one" },
        { "tool": "save_note", "status": "error", "error": "full", "output": "" },
    ]);
    let payload = json!({
        "bundle_id": bundle["bundle_id"], "status": "partial_failure", "step_results": steps,
    });
    computer.send("tool-bundle-result", payload).await;
    let told = computer.until("streaming-complete").await;
    let outputs: Vec<&Value> = told.iter().filter(|frame| frame["type"] == "tool-output").collect();
    let came = |frame: &&Value| frame["payload"]["success"].as_bool().unwrap();
    assert_eq!(outputs.iter().map(came).collect::<Vec<_>>(), [true, false, false]);
    let asked = world.model.calls();
    let results = asked[1]["messages"].as_array().unwrap();
    let results: Vec<&str> = results
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["one", "full", "not run"]);
}

#[tokio::test]
async fn a_client_that_was_away_goes_on_in_the_middle_of_a_call() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer
        .query("c1", json!([{ "text": "so: ", "tools": [note("milk")] }, { "text": "noted" }]))
        .await;
    let told = computer.until("tool-call").await;
    let request = first(&told, "tool-call")["payload"]["request_id"].clone();
    // The client has seen the call, so it is not told of it again, and answers on another connection.
    let mut computer = computer.again(world.windie(), &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.send("tool-result", done(&request, "saved")).await;
    let told = computer.until("streaming-complete").await;
    assert_eq!(text(&told), "noted");
    assert_eq!(first(&told, "streaming-complete")["payload"]["final_response"], "noted");
    // One that comes after the end hears nothing of it.
    let mut late = Computer::reach(world.windie(), None, &handshake("u")).await;
    late.until("remote-tool-catalog").await;
    late.send("load-settings", json!({})).await;
    assert_eq!(kinds(&late.until("settings-loaded").await), ["settings-loaded"]);
}

#[tokio::test]
async fn a_turn_ends_while_nobody_listens_and_is_heard_of_afterwards() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    computer.query("c1", json!([{ "text": "hello", "delay_ms": 300 }])).await;
    let told = computer.until("query-accepted").await;
    let session = told[0]["session_id"].as_str().unwrap().to_owned();
    let plain = json!({ "type": "handshake", "user_id": "u" });
    drop(computer);
    world.client().until_over(&session).await;
    let mut computer = Computer::reach(world.windie(), None, &plain).await;
    let told = computer.until("streaming-complete").await;
    assert_eq!(text(&told), "hello");
}

#[tokio::test]
async fn a_daemon_that_died_in_the_middle_of_a_call_offers_it_again() {
    let mut world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    let id = computer.query("c1", json!([{ "tools": [note("milk")] }, { "text": "noted" }])).await;
    let told = computer.until("tool-call").await;
    let seen = told.last().unwrap()["sequence"].as_u64().unwrap();
    world.kill();
    world.restart();
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    let told = loop {
        let frame = computer.raw().await.unwrap();
        if frame["type"] == "tool-call" {
            break frame;
        }
    };
    // It is numbered after everything that may have been seen.
    assert_eq!(told["turn_ref"], id.as_str());
    assert!(told["sequence"].as_u64().unwrap() > seen, "{told}");
    computer.forget(&id, told["sequence"].as_u64().unwrap());
    computer.send("tool-result", done(&told["payload"]["request_id"], "saved")).await;
    let told = computer.until("streaming-complete").await;
    assert_eq!(text(&told), "noted");
}

#[tokio::test]
async fn a_query_is_stopped_also_before_it_comes() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let id = computer.query("c1", json!([{ "text": "so", "hang": true }])).await;
    computer.until("streaming-response").await;
    computer.send("stop-query", json!({ "conversation_ref": "c1", "turn_ref": null })).await;
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
    computer.send("stop-query", json!({})).await;
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
async fn a_token_says_who_one_is_whatever_one_claims() {
    let world = World::start(AUTH).await;
    let (ann, bob) = (Guest::register(&world).await, Guest::register(&world).await);
    let mut nobody = Computer::reach(world.windie(), None, &handshake("ann")).await;
    assert_eq!(nobody.close_code().await, 1008);
    let mut wrong = Computer::reach(world.windie(), Some("wnd_install_x"), &handshake("ann")).await;
    assert_eq!(wrong.close_code().await, 1008);
    let token = ann.token.as_deref();
    let mut hers = Computer::reach(world.windie(), token, &handshake("somebody")).await;
    hers.until("remote-tool-catalog").await;
    let told = hers.turn("c", json!([{ "text": "for Ann" }])).await;
    assert_eq!(told[0]["user_id"], ann.user.as_str());
    let session = told[0]["session_id"].as_str().unwrap().to_owned();
    // The same name is another conversation to somebody else, and hers cannot be named.
    let mut his =
        Computer::reach(world.windie(), bob.token.as_deref(), &handshake(&ann.user)).await;
    his.until("remote-tool-catalog").await;
    let told = his.turn("c", json!([{ "text": "for Bob" }])).await;
    assert_ne!(told[0]["session_id"], session.as_str());
    let told = his.turn(&session, json!([{ "text": "for Bob" }])).await;
    assert_ne!(told[0]["session_id"], session.as_str());
    let begun = world.client().create(world.workspace()).await;
    let told = his.turn(&begun, json!([{ "text": "for Bob" }])).await;
    assert_ne!(told[0]["session_id"], begun.as_str());
    // Neither are settings.
    hers.send(
        "update-settings",
        json!({ "interaction_mode": "chat",
        "provider_api_keys": { "openai": { "enabled": true, "api_key": "sk-anns" } } }),
    )
    .await;
    hers.until("settings-updated").await;
    his.send("load-settings", json!({})).await;
    let config = his.until("settings-loaded").await.pop().unwrap();
    assert_eq!(config["payload"]["config"]["interaction_mode"], "agent");
    hers.send("load-settings", json!({})).await;
    let config = hers.until("settings-loaded").await.pop().unwrap();
    let key = &config["payload"]["config"]["provider_api_keys"]["openai"];
    assert_eq!(*key, json!({ "enabled": true, "api_key": "" }));
}

#[tokio::test]
async fn a_conversation_that_the_client_kept_takes_the_place_of_what_there_was() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    computer.turn("c", json!([{ "text": "one" }])).await;
    let entry = |role: &str, content: &str| json!({ "role": role, "content": content });
    let messages = json!([
        entry("user", "Earlier prompt"),
        entry("assistant", "Earlier reply"),
        { "role": "tool", "content": "42", "tool_name": "wait", "message_type": "tool_output" },
    ]);
    let payload = json!({
        "conversation_ref": "c", "messages": messages, "rehydrate_mode": "replace",
    });
    computer.send("rehydrate-conversation", payload).await;
    computer.turn("c", json!([{ "text": "two" }])).await;
    let calls = world.model.calls();
    let said: Vec<String> = calls.last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] != "system")
        .map(|message| message["content"].to_string())
        .collect();
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[0].contains("Earlier prompt") && said[1].contains("Earlier reply"));
    assert!(said[2].contains("42"));
    let bad = json!({ "conversation_ref": "c", "messages": [], "rehydrate_mode": "merge" });
    computer.send("rehydrate-conversation", bad).await;
    let error = computer.until("error").await.pop().unwrap();
    let message = error["payload"]["message"].as_str().unwrap();
    assert!(message.contains("rehydrate_mode"), "{message}");
}

#[tokio::test]
async fn models_are_listed_and_the_user_is_greeted() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let id = computer.send("list-models", json!({})).await;
    let listed = computer.until("models-listed").await.pop().unwrap();
    assert_eq!(listed["id"], id.as_str());
    for side in ["local", "online", "vision"] {
        assert!(listed["payload"][side].is_array(), "{listed}");
    }
    computer.send("wakeword-detected", json!({})).await;
    let told = computer.until("wakeword-greeting").await;
    assert_eq!(kinds(&told), ["wakeword-activated", "wakeword-greeting"]);
    assert_eq!(told[0]["payload"]["greeting"], told[1]["payload"]["text"]);
}

#[tokio::test]
async fn a_session_of_another_protocol_goes_on_here_and_the_other_way_round() {
    let world = World::start("").await;
    let client = world.client();
    let begun = client.create(world.workspace()).await;
    client.say(&begun, json!([{ "text": "in the harness" }])).await;
    client.until_over(&begun).await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let script = json!([
        { "tools": [{ "name": "shell", "args": { "command": "echo hi" } }] }, { "text": "here" },
    ]);
    let told = computer.turn(&begun, script).await;
    assert_eq!(told[0]["session_id"], begun.as_str());
    // It keeps the tools that it has, which the daemon runs.
    let call = &first(&told, "tool-call")["payload"];
    assert_eq!(call["metadata"]["skip_local_execution"], true);
    assert!(first(&told, "tool-output")["payload"]["output"].as_str().unwrap().contains("hi"));
    let told = computer.turn("mine", json!([{ "text": "begun here" }])).await;
    let session = told[0]["session_id"].as_str().unwrap();
    let shown = client.session(session).await;
    assert!(shown.to_string().contains("begun here"), "{shown}");
}

/// A picture, as far as anybody looks.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";

#[tokio::test]
async fn pictures_of_the_screen_reach_the_model() {
    let world = World::start(AUTH).await;
    let (ann, bob) = (Guest::register(&world).await, Guest::register(&world).await);
    let (_, kept) = ann.hand_in(Some("image/png"), PNG).await;
    let (_, foreign) = bob.hand_in(Some("image/png"), PNG).await;
    let token = ann.token.as_deref();
    let mut computer = Computer::reach(world.windie(), token, &handshake("ann")).await;
    computer.until("remote-tool-catalog").await;
    // One of somebody else's, and one that is not there, are passed over.
    let pictures = json!([kept["artifact_id"], foreign["artifact_id"], "nothing.png"]);
    let script = json!([{ "tools": [note("x")] }, { "text": "seen" }]);
    let text = format!("look {{{{script: {script}}}}}");
    let payload = json!({ "text": text, "conversation_ref": "c", "screenshot_refs": pictures });
    computer.send("query", payload).await;
    let told = computer.until("tool-call").await;
    assert_eq!(first(&told, "user-message-full")["payload"]["metadata"]["has_screenshot"], true);
    let request = &first(&told, "tool-call")["payload"]["request_id"];
    let (_, after) = ann.hand_in(Some("image/png"), &[PNG, b"!"].concat()).await;
    let mut result = done(request, "saved");
    result["data"]["screenshot_ref"] = after["artifact_id"].clone();
    result["data"]["system_state"] =
        json!({ "active_window": "Notes", "mouse_position": "(1, 2)" });
    computer.send("tool-result", result).await;
    let told = computer.until("streaming-complete").await;
    let output = &first(&told, "tool-output")["payload"];
    assert_eq!(output["screenshot_ref"], after["artifact_id"]);
    assert_eq!(output["metadata"]["active_window"], "Notes");
    let calls = world.model.calls();
    let pictures =
        |body: &Value| body["messages"].to_string().matches("data:image/png;base64,").count();
    assert_eq!((pictures(&calls[0]), pictures(&calls[1])), (1, 2));
}

#[tokio::test]
async fn what_a_user_sets_outlives_the_daemon() {
    let mut world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let set = json!({ "speech_mode_enabled": true, "selected_model_id": "other", "model_provider": "fake" });
    computer.send("update-settings", set).await;
    computer.until("settings-updated").await;
    world.kill();
    world.restart();
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    computer.send("load-settings", json!({})).await;
    let config = computer.until("settings-loaded").await.pop().unwrap();
    assert_eq!(config["payload"]["config"]["speech_mode_enabled"], true);
    computer.turn("c", json!([{ "text": "hi" }])).await;
    assert_eq!(world.model.calls()[0]["model"], "other");
    // A model of somebody who is not configured makes way for the usual one.
    computer.send("update-settings", json!({ "model_provider": "nobody" })).await;
    computer.until("settings-updated").await;
    assert_eq!(text(&computer.turn("c", json!([{ "text": "still" }])).await), "still");
    computer.send("update-settings", json!({ "interaction_mode": "dance" })).await;
    let error = computer.until("error").await.pop().unwrap();
    let message = error["payload"]["message"].as_str().unwrap();
    assert!(message.starts_with("Invalid settings: Invalid "), "{message}");
}

#[tokio::test]
async fn a_conversation_is_summarized_when_the_client_says_so() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    computer.send("compact-history", json!({ "force": true, "conversation_ref": "c" })).await;
    let error = computer.until("error").await.pop().unwrap();
    assert_eq!(error["payload"]["message"], "Conversation not found");
    for n in 0..6 {
        computer.turn("c", json!([{ "text": format!("answer {n}") }])).await;
    }
    let id = computer.send("compact-history", json!({ "force": true })).await;
    let told = computer.until("context-compaction-completed").await;
    assert_eq!(kinds(&told), ["context-compaction-started", "context-compaction-completed"]);
    assert!(told.iter().all(|frame| frame["turn_ref"] == id.as_str()), "{told:?}");
    let entries = told[1]["payload"]["replacement_history_entries"].as_array().unwrap();
    assert!(!entries.is_empty());
    // Where nothing was said since, there is nothing to it.
    computer.turn("d", json!([{ "text": "short" }])).await;
    for skipped in [Value::Null, json!("nothing_to_compact")] {
        computer.send("compact-history", json!({ "conversation_ref": "d" })).await;
        let told = computer.until("context-compaction-completed").await;
        assert_eq!(told.last().unwrap()["payload"]["skipped_reason"], skipped);
    }
    computer.query("c", json!([{ "text": "so", "hang": true }])).await;
    computer.until("streaming-response").await;
    computer.send("compact-history", json!({ "conversation_ref": "c" })).await;
    let error = computer.until("error").await.pop().unwrap();
    let busy = "Cannot compact history while a query is active. Stop the current query and retry.";
    assert_eq!(error["payload"]["message"], busy);
}

#[tokio::test]
async fn the_daemons_own_tools_are_for_folders_of_this_machine() {
    let world = World::start("").await;
    std::fs::write(world.workspace().join("note.txt"), "milk").unwrap();
    let definition = json!({ "version": 1, "runtime": { "workspace_path": world.workspace() } });
    let mut computer = Computer::connect(world.windie(), "u", definition).await;
    let script = json!([
        { "tools": [{ "name": "shell", "args": { "command": "cat note.txt" } }] },
        { "text": "read" },
    ]);
    let told = computer.turn("c", script.clone()).await;
    assert_eq!(first(&told, "tool-call")["payload"]["metadata"]["skip_local_execution"], true);
    assert!(first(&told, "tool-output")["payload"]["output"].as_str().unwrap().contains("milk"));
    let mut elsewhere = Computer::connect(world.windie(), "v", Value::Null).await;
    let told = elsewhere.turn("c", script).await;
    assert_eq!(first(&told, "tool-output")["payload"]["success"], false);
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
async fn a_conversation_that_was_deleted_begins_anew() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let told = computer.turn("c", json!([{ "text": "one" }])).await;
    let session = told[0]["session_id"].as_str().unwrap().to_owned();
    let mut socket = world.socket().await;
    socket.ask("session.delete", json!({ "sessionId": session })).await.unwrap();
    let told = computer.turn("c", json!([{ "text": "two" }])).await;
    assert_eq!(text(&told), "two");
    assert_ne!(told[0]["session_id"], session.as_str());
}

#[tokio::test]
async fn a_token_that_is_taken_away_ends_the_connection() {
    let world = World::start(AUTH).await;
    let ann = Guest::register(&world).await;
    let token = ann.token.as_deref();
    let mut computer = Computer::reach(world.windie(), token, &handshake("ann")).await;
    computer.until("remote-tool-catalog").await;
    computer.turn("c", json!([{ "text": "hi" }])).await;
    let file = world.home.path().join("quintet.toml");
    let arguments = ["installs", "revoke", &ann.install, "--config", file.to_str().unwrap()];
    let revoked = quintet(&arguments).output().unwrap().status;
    assert!(revoked.success());
    computer.query("c", json!([{ "text": "never" }])).await;
    assert_eq!(computer.close_code().await, 1008);
}

#[tokio::test]
async fn a_client_keeps_the_history_and_brings_it_back() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let text = "remember {{script: [{\"text\": \"I will\"}]}}";
    let payload = json!({ "text": text, "conversation_ref": "c", "revision_id": "rev_1" });
    let id = computer.send("query", payload).await;
    let told = computer.until("streaming-complete").await;
    let kept = first(&told, "model-history-updated")["payload"].clone();
    assert_eq!(kept["checkpoint_id"], format!("mh:rev_1:{id}"));
    let roles: Vec<&Value> =
        kept["rows"].as_array().unwrap().iter().map(|row| &row["role"]).collect();
    assert_eq!(roles, ["user", "assistant"]);
    // Elsewhere it goes on with that.
    let payload = json!({
        "conversation_ref": "fork", "messages": [], "rehydrate_mode": "replace",
        "model_history": { "revision_id": "rev_1", "rows": kept["rows"] },
    });
    computer.send("rehydrate-conversation", payload).await;
    computer.turn("fork", json!([{ "text": "on" }])).await;
    let asked = world.model.calls().pop().unwrap();
    let said = asked["messages"].as_array().unwrap().iter();
    assert_eq!(said.filter(|message| message["role"] != "system").count(), 3, "{asked}");
}

#[tokio::test]
async fn a_client_that_starts_anew_does_not_run_again_what_is_done() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    let script =
        json!([{ "tools": [note("once")] }, { "tools": [note("twice")] }, { "text": "done" }]);
    computer.query("c", script).await;
    let told = computer.until("tool-call").await;
    let request = first(&told, "tool-call")["payload"]["request_id"].clone();
    computer.send("tool-result", done(&request, "saved")).await;
    computer.until("tool-call").await;
    drop(computer);
    // It has forgotten everything, and hears the turn from its beginning.
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    let told = computer.until("tool-output").await;
    let over = &first(&told, "tool-call")["payload"]["metadata"];
    assert_eq!(over["skip_local_execution"], true);
    let told = computer.until("tool-call").await;
    let open = &first(&told, "tool-call")["payload"];
    assert!(open["metadata"].get("skip_local_execution").is_none(), "{open}");
    computer.send("tool-result", done(&open["request_id"], "saved")).await;
    assert_eq!(text(&computer.until("streaming-complete").await), "done");
}
