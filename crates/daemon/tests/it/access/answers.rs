//! Tests of answers without an id, and of the size of batches.

use serde_json::{Value, json};

use crate::daemon::World;
use crate::socket::Socket;

const APPROVE_READS: &str = "[approval]\nkinds = [\"read\"]\n[verify]\nauto = false\n";

/// Answers without an id; returns the code of the refusal, if any.
async fn respond(socket: &mut Socket, session: &str, response: Value) -> Option<i64> {
    let answer = json!({ "sessionId": session, "response": response });
    socket.ask("agent.respond", answer).await.err().and_then(|error| error["code"].as_i64())
}

#[tokio::test]
async fn an_answer_without_an_id_applies_to_the_only_shown_request() {
    let world = World::start(APPROVE_READS).await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    // Approvals for reads are requested concurrently.
    let read = |path: &str| json!({ "name": "read_file", "args": { "path": path } });
    let script = json!([{ "tools": [read("a"), read("b")] }, { "text": "done" }]);
    socket.say(&id, script).await.unwrap();
    let mut calls = Vec::new();
    for _ in 0..2 {
        let told = socket.until_notified("agent.approval").await;
        calls.push(told[told.len() - 1]["params"]["toolId"].clone());
    }
    let yes = json!({ "approved": true });
    assert_eq!(respond(&mut socket, &id, yes.clone()).await, Some(-32602), "two wait");
    for text in ["y", "yes", "ok", "allow", "true"] {
        let typed = json!({ "toolId": calls[0], "answer": text });
        assert_eq!(respond(&mut socket, &id, typed).await, Some(-32602), "{text}");
        assert_eq!(respond(&mut socket, &id, json!(text)).await, Some(-32602), "{text}");
    }
    let named = json!({ "toolId": calls[0], "approved": false });
    assert_eq!(respond(&mut socket, &id, named).await, None);
    let mut other = world.socket().await;
    assert_eq!(
        respond(&mut other, &id, yes.clone()).await,
        Some(-32602),
        "the other connection was not shown the request"
    );
    assert_eq!(respond(&mut socket, &id, json!("y")).await, Some(-32602));
    let waiting = socket.ask("session.get", json!({ "sessionId": id })).await.unwrap();
    assert_eq!(waiting["pending"].as_array().unwrap().len(), 1, "{waiting}");
    assert_eq!(respond(&mut socket, &id, yes.clone()).await, None);
    socket.until_notified("agent.turn_complete").await;
    assert_eq!(respond(&mut socket, &id, yes).await, Some(-32602), "nothing waits");
}

#[tokio::test]
async fn the_size_of_a_batch_is_limited() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let batch = |calls: usize| {
        let one = json!({ "jsonrpc": "2.0", "id": 1, "method": "system.ping" }).to_string();
        format!("[{}]", vec![one; calls].join(","))
    };
    socket.send(&batch(5000)).await;
    assert_eq!(socket.frame().await.unwrap()["error"]["code"], -32600);
    socket.send(&batch(50)).await;
    assert_eq!(socket.frame().await.unwrap().as_array().unwrap().len(), 50);
}
