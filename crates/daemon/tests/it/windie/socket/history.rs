//! Conversations: kept, brought back, summarized, begun elsewhere.

use serde_json::{Value, json};

use super::{done, handshake, note};
use crate::computer::{Computer, first, kinds, text};
use crate::daemon::World;

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
async fn calls_that_a_client_kept_are_calls_again() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let call = |id: &str, arguments: Value| {
        let function = json!({ "name": "wait", "arguments": arguments });
        json!({ "id": id, "type": "function", "function": function })
    };
    let messages = json!([
        { "role": "user", "content": "Wait" },
        { "role": "assistant", "content": "I do", "tool_calls": [
            call("call_a", json!("{\"seconds\": 1}")), call("call_b", json!({ "seconds": 2 })),
        ] },
        { "role": "tool", "content": "waited 1", "tool_name": "wait", "tool_call_id": "call_a" },
        { "role": "tool", "content": "waited 2", "tool_name": "wait", "correlation_id": "call_b" },
        { "role": "tool", "content": "of nothing", "tool_name": "wait", "tool_call_id": "call_z" },
    ]);
    let payload = json!({
        "conversation_ref": "c", "messages": messages, "rehydrate_mode": "replace",
    });
    computer.send("rehydrate-conversation", payload).await;
    // A call of the same name is another one.
    let again = json!({ "name": "wait", "id": "call_a", "args": { "seconds": 3 } });
    computer.query("c", json!([{ "tools": [again] }, { "text": "so" }])).await;
    let told = computer.until("tool-call").await;
    let request = first(&told, "tool-call")["payload"]["request_id"].clone();
    let data = json!({ "output": "waited 3" });
    let result = json!({ "request_id": request, "success": true, "data": data });
    computer.send("tool-result", result).await;
    computer.until("streaming-complete").await;
    let asked = world.model.calls().pop().unwrap();
    let said = asked["messages"].as_array().unwrap();
    let said: Vec<&Value> = said.iter().filter(|message| message["role"] != "system").collect();
    let roles: Vec<&str> = said.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["user", "assistant", "tool", "tool", "user", "user", "assistant", "tool"],
        "{asked}"
    );
    assert_eq!(said[1]["tool_calls"][0]["function"]["name"], "wait");
    assert_eq!(said[1]["tool_calls"][0]["id"], said[2]["tool_call_id"]);
    assert_eq!(
        (&said[2]["content"], &said[3]["content"]),
        (&json!("waited 1"), &json!("waited 2"))
    );
    assert!(said[4]["content"].to_string().contains("of nothing"));
    assert_eq!(said[7]["content"], "waited 3");
    assert_ne!(said[7]["tool_call_id"], said[2]["tool_call_id"]);
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

/// A picture, as far as anybody looks, in base64.
const PNG: &str = "iVBORw0KGgpub3QgbXVjaCBvZiBhIHBpY3R1cmU=";

/// Asks in a history that the client keeps.
async fn ask(computer: &mut Computer, revision: &str, text: &str) -> Vec<Value> {
    let payload = json!({ "text": text, "conversation_ref": "c", "revision_id": revision });
    computer.send("query", payload).await;
    computer.until("streaming-complete").await
}

fn said(text: &str, script: &Value) -> String {
    format!("{text} {{{{script: {script}}}}}")
}

/// A turn in which a tool of the client shows a picture, and another one after it; gives the rows that
/// the client keeps of each.
async fn pictured_and_plain(computer: &mut Computer) -> (Value, Value) {
    let script = json!([{ "tools": [note("x")] }, { "text": "seen" }]);
    let payload = json!({
        "text": said("look", &script), "conversation_ref": "c", "revision_id": "rev_1",
    });
    computer.send("query", payload).await;
    let told = computer.until("tool-call").await;
    let mut result = done(&first(&told, "tool-call")["payload"]["request_id"], "saved");
    result["data"]["screenshot"] = PNG.into();
    computer.send("tool-result", result).await;
    let told = computer.until("streaming-complete").await;
    let shown = first(&told, "tool-output")["payload"]["screenshot_ref"].clone();
    let rows = first(&told, "model-history-updated")["payload"]["rows"].clone();
    assert!(shown.is_string(), "a picture in the message itself can be fetched: {told:?}");
    assert_eq!(rows[2]["image_refs"], json!([shown]));
    let told = ask(computer, "rev_1", &said("more", &json!([{ "text": "two" }]))).await;
    (rows, first(&told, "model-history-updated")["payload"]["rows"].clone())
}

/// The pictures in what a model was asked last, and how many messages there were beside instructions.
fn asked(world: &World) -> (usize, usize) {
    let asked = world.model.calls().pop().unwrap();
    let pictures = asked["messages"].to_string().matches("data:image/png;base64,").count();
    let messages = asked["messages"].as_array().unwrap().iter();
    (pictures, messages.filter(|message| message["role"] != "system").count())
}

async fn seeing_client(world: &World) -> Computer {
    let mut computer = Computer::reach(world.windie(), None, &handshake("u")).await;
    computer.until("remote-tool-catalog").await;
    computer
}

#[tokio::test]
async fn a_retry_takes_turns_back_and_copies_nothing() {
    let world = World::start("").await;
    let mut computer = seeing_client(&world).await;
    let (kept, _) = pictured_and_plain(&mut computer).await;
    let payload = json!({
        "conversation_ref": "c", "messages": [], "rehydrate_mode": "replace",
        "model_history": { "revision_id": "rev_2", "rows": kept },
    });
    computer.send("rehydrate-conversation", payload).await;
    let told = ask(&mut computer, "rev_2", &said("more", &json!([{ "text": "other" }]))).await;
    // The provider is sent a picture that a tool returned as a message of its own.
    assert_eq!(asked(&world), (1, 6), "the picture stays, and there is nothing twice");
    // Other protocols show neither what was taken back nor a copy of what was kept.
    let session = told[0]["session_id"].as_str().unwrap();
    let shown = world.client().session(session).await;
    let texts: Vec<&str> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["parts"][0]["text"].as_str())
        .map(|text| text.split(' ').next().unwrap())
        .collect();
    assert_eq!(texts, ["look", "saved", "seen", "more", "other"], "{shown}");
    assert_eq!(shown["turns"].as_array().unwrap().len(), 2);
    let rows = &first(&told, "model-history-updated")["payload"]["rows"];
    assert_eq!(rows.as_array().unwrap().len(), 6, "{rows}");
}

#[tokio::test]
async fn a_retry_of_a_client_that_keeps_to_a_history_needs_no_rehydrate() {
    let world = World::start("").await;
    let mut computer = seeing_client(&world).await;
    let (_, rows) = pictured_and_plain(&mut computer).await;
    let again = rows[4]["content"].as_str().unwrap().to_owned();
    ask(&mut computer, "rev_2", &again).await;
    assert_eq!(asked(&world), (1, 6));
    // A client that names every query another history asks the same thing twice.
    let mut other = Computer::connect(world.windie(), "v", Value::Null).await;
    let same = said("ping", &json!([{ "text": "pong" }]));
    for (n, messages) in [(1, 1), (2, 3), (3, 5)] {
        ask(&mut other, &format!("own_{n}"), &same).await;
        assert_eq!(asked(&world).1, messages);
    }
}

#[tokio::test]
async fn a_history_and_a_message_are_those_of_their_own_turn() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let mut turns = Vec::new();
    for n in 1..=3 {
        let text = said(&format!("question {n}"), &json!([{ "text": format!("answer {n}") }]));
        let payload = json!({ "text": text, "conversation_ref": "c", "revision_id": "rev_1" });
        turns.push(computer.send("query", payload).await);
    }
    for (n, turn) in (1_usize..).zip(&turns) {
        let mut told = Vec::new();
        while !kinds(&told).contains(&"streaming-complete") {
            told.push(computer.frame().await.unwrap());
            told.retain(|frame| frame["turn_ref"] == turn.as_str());
        }
        let full = first(&told, "user-message-full")["payload"]["content"].as_str().unwrap();
        assert!(full.starts_with(&format!("question {n}")), "{full}");
        let rows = first(&told, "model-history-updated")["payload"]["rows"].clone();
        assert_eq!(rows.as_array().unwrap().len(), 2 * n, "{rows}");
        assert_eq!(rows[2 * n - 1]["content"], format!("answer {n}"));
    }
}

#[tokio::test]
async fn a_summary_that_the_client_asks_for_leads_to_a_history() {
    let world = World::start("[windie]\ntrace_events = true\n").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    for n in 0..6 {
        ask(&mut computer, "rev_1", &said("go", &json!([{ "text": format!("answer {n}") }]))).await;
    }
    // A client that comes back knows the turn as its last one, and drops spans of any other.
    let hello = json!({ "type": "handshake", "user_id": "u" });
    let mut computer = computer.again(world.windie(), &hello).await;
    computer.until("remote-tool-catalog").await;
    let request = computer.send("compact-history", json!({ "conversation_ref": "c" })).await;
    let mut told = Vec::new();
    while !kinds(&told).contains(&"model-history-updated") {
        told.push(computer.frame().await.unwrap());
        told.retain(|frame| frame["id"] == request.as_str());
    }
    assert_eq!(
        kinds(&told),
        ["context-compaction-started", "context-compaction-completed", "model-history-updated"]
    );
    let kept = &told[2]["payload"];
    assert_eq!(kept["revision_id"], "rev_1");
    assert_eq!(kept["rows"][0]["message_type"], "context_compaction");
    // It is what the session has, so bringing it back changes nothing.
    let payload = json!({
        "conversation_ref": "c", "messages": [], "rehydrate_mode": "replace",
        "model_history": { "revision_id": "rev_1", "rows": kept["rows"] },
    });
    computer.send("rehydrate-conversation", payload).await;
    let told = ask(&mut computer, "rev_1", &said("go", &json!([{ "text": "on" }]))).await;
    let session = told[0]["session_id"].as_str().unwrap();
    let events = world.client().history(session).await;
    assert!(events.iter().all(|event| event["type"] != "history_replaced"), "{events:?}");
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
