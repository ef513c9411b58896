//! Conversations: kept, brought back, summarized, begun elsewhere.

use serde_json::{Value, json};

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
