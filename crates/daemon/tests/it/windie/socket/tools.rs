//! Tools, whoever runs them, and what they show.

use serde_json::{Value, json};

use super::super::{AUTH, Guest};
use super::{done, handshake, note};
use crate::computer::{Computer, first, kinds, text};
use crate::daemon::World;

/// A picture, as far as anybody looks.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";

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
async fn what_a_client_keeps_with_a_result_is_shown_and_told_to_no_model() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.query("c1", json!([{ "tools": [note("milk")] }, { "text": "noted" }])).await;
    let told = computer.until("tool-call").await;
    let mut result = done(&first(&told, "tool-call")["payload"]["request_id"], "saved");
    let shown = json!({ "id": "a", "kind": "image", "source": "tool_result", "status": "ready" });
    let inline = json!({ "id": "b", "screenshotUrl": "data:image/png;base64,eA==" });
    result["data"]["display_attachments"] = json!([shown, inline]);
    result["data"]["capture_meta"] = json!({ "frame_id": "frame-1" });
    result["data"]["system_state_internal"] = json!({ "screen_resolution": "1920x1080" });
    computer.send("tool-result", result).await;
    let told = computer.until("streaming-complete").await;
    let output = &first(&told, "tool-output")["payload"];
    assert_eq!(output["display_attachments"], json!([shown]));
    assert_eq!(output["capture_meta"], json!({ "frame_id": "frame-1" }));
    let asked = world.model.calls().pop().unwrap().to_string();
    assert!(!asked.contains("1920x1080") && !asked.contains("frame-1"), "{asked}");
}

#[tokio::test]
async fn only_the_connection_that_asked_runs_what_that_leads_to() {
    let world = World::start("[clients]\ngrace_seconds = 1\n").await;
    let hello = json!({ "type": "handshake", "user_id": "u" });
    let mut asks = Computer::reach(world.windie(), None, &hello).await;
    asks.until("remote-tool-catalog").await;
    let wait = |seconds: u64| json!({ "name": "wait", "args": { "seconds": seconds, "explanation": "x" } });
    asks.query("c", json!([{ "tools": [wait(1)] }, { "text": "so" }])).await;
    let mine = asks.until("tool-call").await;
    let runnable = |told: &[Value]| {
        first(told, "tool-call")["payload"]["metadata"].get("skip_local_execution").is_none()
    };
    assert!(runnable(&mine));
    let mut watches = Computer::reach(world.windie(), None, &hello).await;
    let theirs = watches.until("tool-call").await;
    assert!(!runnable(&theirs));
    // Where the first one is gone for good, the other one is asked: the tool only looks.
    drop(asks);
    let theirs = watches.until("tool-call").await;
    assert!(runnable(&theirs));
    let request = &first(&theirs, "tool-call")["payload"]["request_id"];
    watches.send("tool-result", done(request, "waited")).await;
    assert_eq!(text(&watches.until("streaming-complete").await), "so");
}

#[tokio::test]
async fn a_result_from_another_connection_does_not_count() {
    for hello in [json!({ "type": "handshake", "user_id": "u" }), handshake("u")] {
        let world = World::start("").await;
        let mut asks = Computer::reach(world.windie(), None, &hello).await;
        asks.until("remote-tool-catalog").await;
        let mut other = Computer::reach(world.windie(), None, &hello).await;
        other.until("remote-tool-catalog").await;
        let call = match hello.get("agent_definition") {
            Some(_) => note("milk"),
            None => json!({ "name": "wait", "args": { "seconds": 1, "explanation": "x" } }),
        };
        asks.query("c", json!([{ "tools": [call] }, { "text": "so" }])).await;
        let mine = asks.until("tool-call").await;
        let request = first(&mine, "tool-call")["payload"]["request_id"].clone();
        other.send("tool-result", done(&request, "not mine")).await;
        // Messages are carried out in order: once this is answered, the result was looked at.
        other.send("load-settings", json!({})).await;
        other.until("settings-loaded").await;
        asks.send("tool-result", done(&request, "mine")).await;
        assert_eq!(text(&asks.until("streaming-complete").await), "so");
        let asked = world.model.calls()[1].to_string();
        assert!(asked.contains("\"mine\"") && !asked.contains("not mine"), "{asked}");
    }
}

#[tokio::test]
async fn a_queued_query_runs_with_its_own_instructions_and_tools() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.query("c", json!([{ "tools": [note("milk")] }, { "text": "first" }])).await;
    let told = computer.until("tool-call").await;
    let request = first(&told, "tool-call")["payload"]["request_id"].clone();
    let mut definition = super::own_tool();
    definition["system_prompt"]["content"] = json!("You sing.");
    definition["tools"]["client_manifest"]["tools"][0]["name"] = json!("sing_song");
    let text_of_query = format!("go {{{{script: {}}}}}", json!([{ "text": "second" }]));
    let payload = json!({
        "text": text_of_query, "conversation_ref": "c", "agent_definition": definition,
    });
    computer.send("query", payload).await;
    computer.send("load-settings", json!({})).await;
    computer.until("settings-loaded").await;
    computer.send("tool-result", done(&request, "saved")).await;
    assert_eq!(text(&computer.until("streaming-complete").await), "first");
    assert_eq!(text(&computer.until("streaming-complete").await), "second");
    let asked: Vec<String> = world.model.calls().iter().map(ToString::to_string).collect();
    assert_eq!(asked.len(), 3);
    let notes = |asked: &String| asked.contains("You take notes.") && asked.contains("save_note");
    assert!(asked[..2].iter().all(notes), "{asked:#?}");
    assert!(asked[2].contains("You sing.") && asked[2].contains("sing_song"), "{}", asked[2]);
    assert!(!asked[2].contains("You take notes."), "{}", asked[2]);
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
    assert_eq!(output["output"], "saved");
    let calls = world.model.calls();
    let pictures =
        |body: &Value| body["messages"].to_string().matches("data:image/png;base64,").count();
    assert_eq!((pictures(&calls[0]), pictures(&calls[1])), (1, 2));
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
