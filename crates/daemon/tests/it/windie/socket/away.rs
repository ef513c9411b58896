//! Clients that go and come back, and daemons that do.

use serde_json::{Value, json};

use super::{done, handshake, note};
use crate::computer::{Computer, first, kinds, text};
use crate::daemon::World;

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
    // Once it has said that it heard the end, nobody is told of it again.
    for _ in 0..2 {
        computer.send("load-settings", json!({})).await;
        computer.until("settings-loaded").await;
    }
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
async fn a_turn_that_ended_while_nobody_listened_is_heard_of_after_a_restart() {
    let mut world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.query("c1", json!([{ "text": "hello", "delay_ms": 300 }])).await;
    let told = computer.until("query-accepted").await;
    let session = told[0]["session_id"].as_str().unwrap().to_owned();
    drop(computer);
    world.client().until_over(&session).await;
    world.kill();
    world.restart();
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    assert_eq!(text(&computer.until("streaming-complete").await), "hello");
}

#[tokio::test]
async fn an_end_that_only_reached_a_dead_connection_is_told_again() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.query("c1", json!([{ "text": "hello", "delay_ms": 300 }])).await;
    let told = computer.until("query-accepted").await;
    let session = told[0]["session_id"].as_str().unwrap().to_owned();
    // It reads no more, and is still written to.
    world.client().until_over(&session).await;
    let mut other = Computer::connect(world.windie(), "other", Value::Null).await;
    other.turn("c1", json!([{ "text": "meanwhile" }])).await;
    let mut computer = computer.again(world.windie(), &handshake("u")).await;
    assert_eq!(text(&computer.until("streaming-complete").await), "hello");
}

#[tokio::test]
async fn another_client_of_a_user_hears_of_what_it_speaks_of_alone() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.query("c1", json!([{ "tools": [note("milk")] }, { "text": "noted" }])).await;
    let told = computer.until("tool-call").await;
    let mut other = handshake("u");
    other["agent_definition"]["id"] = "agent-2".into();
    let mut other = Computer::reach(world.windie(), None, &other).await;
    // Its messages are not named like those of the first.
    other.send("load-settings", json!({})).await;
    other.until("settings-loaded").await;
    let id = other.query("c2", json!([{ "text": "mine" }])).await;
    let heard = other.until("streaming-complete").await;
    assert!(heard.iter().all(|frame| frame["turn_ref"] == *id), "{heard:#?}");
    // Whoever comes to the conversation sees the call, which is the first one's to run.
    other
        .send(
            "rehydrate-conversation",
            json!({
                "conversation_ref": "c1", "messages": [], "rehydrate_mode": "replace",
            }),
        )
        .await;
    other.until("tool-call").await;
    let request = &first(&told, "tool-call")["payload"]["request_id"];
    other.send("tool-result", done(request, "not mine")).await;
    other.send("load-settings", json!({})).await;
    other.until("settings-loaded").await;
    computer.send("tool-result", done(request, "saved")).await;
    assert_eq!(text(&computer.until("streaming-complete").await), "noted");
}

#[tokio::test]
async fn a_conversation_is_told_once_whatever_it_is_called() {
    let world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.query("c1", json!([{ "tools": [note("milk")] }, { "text": "noted" }])).await;
    let told = computer.until("tool-call").await;
    let session = told[0]["session_id"].as_str().unwrap().to_owned();
    let mut other = handshake("u");
    other["agent_definition"]["id"] = "agent-2".into();
    let mut other = Computer::reach(world.windie(), None, &other).await;
    other.until("remote-tool-catalog").await;
    other.send("load-settings", json!({})).await;
    other.until("settings-loaded").await;
    // Only the first has to run the call, and each hears the name that it knows.
    other.query(&session, json!([{ "text": "and more" }])).await;
    let heard = other.until("tool-call").await;
    let call = first(&heard, "tool-call");
    assert_eq!(call["payload"]["metadata"]["skip_local_execution"], true);
    assert_eq!(call["conversation_ref"], session.as_str());
    let request = &first(&told, "tool-call")["payload"]["request_id"];
    computer.send("tool-result", done(request, "saved")).await;
    let told = computer.until("streaming-complete").await;
    assert!(told.iter().all(|frame| frame["conversation_ref"] == "c1"), "{told:#?}");
}

#[tokio::test]
async fn a_daemon_that_died_in_the_middle_of_a_call_goes_on_number_for_number() {
    let mut world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.query("c1", json!([{ "tools": [note("milk")] }, { "text": "noted" }])).await;
    let told = computer.until("tool-call").await;
    let request = first(&told, "tool-call")["payload"]["request_id"].clone();
    world.kill();
    world.restart();
    // One of the same name is taken for the client come back, and is handed the call.
    let mut anew = Computer::reach(world.windie(), None, &handshake("u")).await;
    anew.until("tool-call").await;
    drop(anew);
    // The client itself has the call, and does not hear of it twice.
    let mut computer = computer.again(world.windie(), &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer.send("tool-result", done(&request, "saved")).await;
    let told = computer.until("streaming-complete").await;
    assert!(!kinds(&told).contains(&"tool-call"), "{told:#?}");
    assert_eq!(text(&told), "noted");
}

#[tokio::test]
async fn a_daemon_that_died_in_the_middle_of_an_answer_goes_on_number_for_number() {
    let mut world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    let text_of_it = "go {{script: [{\"deltas\":[\"so \"],\"repeat\":100,\"gap_ms\":10}]}}";
    let payload = json!({ "text": text_of_it, "conversation_ref": "c1", "revision_id": "rev-1" });
    computer.send("query", payload).await;
    for _ in 0..5 {
        computer.until("streaming-response").await;
    }
    world.kill();
    world.restart();
    let mut computer = computer.again(world.windie(), &handshake("u")).await;
    let told = computer.until("streaming-complete").await;
    let whole = first(&told, "streaming-complete")["payload"]["final_response"].clone();
    assert_eq!(whole, "so ".repeat(100));
    assert_eq!(first(&told, "model-history-updated")["payload"]["revision_id"], "rev-1");
    assert_eq!(text(&computer.turn("c1", json!([{ "text": "on" }])).await), "on");
}

#[tokio::test]
async fn connections_and_daemons_give_the_same_frames_the_same_numbers() {
    let mut world = World::start("").await;
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    let script = json!([
        { "deltas": ["so ", "and ", "so "], "gap_ms": 5, "thought": "hm", "tools": [note("milk")] },
        { "text": "noted" },
    ]);
    computer.query("c1", script).await;
    let mut told = computer.until("tool-call").await;
    told.retain(|frame| frame.get("sequence").is_some());
    let ids = |told: &[Value]| -> Vec<(Value, Value)> {
        told.iter().map(|frame| (frame["event_id"].clone(), frame["payload"].clone())).collect()
    };
    // The same client on another connection, and then with another daemon.
    let mut other = Computer::reach(world.windie(), None, &handshake("u")).await;
    drop(computer);
    other.until("remote-tool-catalog").await;
    assert_eq!(ids(&other.until("tool-call").await), ids(&told));
    drop(other);
    world.kill();
    assert!(!world.data_dir().join("windie-told").exists());
    world.restart();
    let mut anew = Computer::reach(world.windie(), None, &handshake("u")).await;
    anew.until("remote-tool-catalog").await;
    assert_eq!(ids(&anew.until("tool-call").await), ids(&told));
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
