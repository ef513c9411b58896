//! Clients of the original server: frames without `jsonrpc`, and other names.

use serde_json::{Value, json};

use super::of;
use crate::daemon::World;
use crate::socket::Socket;

async fn connect(world: &World) -> Socket {
    Socket::connect(&format!("{}/ws", world.agent())).await
}

async fn create(socket: &mut Socket, world: &World) -> String {
    let params = json!({ "workingDirectory": world.workspace() });
    let created = socket.ask_legacy("session.create", params).await.unwrap();
    created["sessionId"].as_str().unwrap().to_owned()
}

async fn prompt(socket: &mut Socket, id: &str, script: Value) {
    let prompt = format!("go {{{{script: {script}}}}}");
    let params = json!({ "sessionId": id, "prompt": prompt });
    assert_eq!(socket.ask_legacy("agent.prompt", params).await.unwrap()["acknowledged"], true);
}

#[tokio::test]
async fn a_silent_client_is_greeted_in_both_framings() {
    let world = World::start("").await;
    let mut socket = connect(&world).await;
    let hello = socket.frame().await.unwrap();
    assert_eq!((&hello["type"], &hello["method"]), (&hello["method"], &json!("system.connected")));
    let client = hello["data"]["clientId"].as_str().unwrap();
    assert_eq!((client.len(), &client[..7]), (19, "client_"));
    assert_eq!((&hello["params"], &hello["jsonrpc"]), (&hello["data"], &json!("2.0")));
    create(&mut socket, &world).await;
    socket.ask_legacy("system.ping", json!({})).await.unwrap();
    // A client is greeted only once.
    let mut strict = connect(&world).await;
    strict.send(r#"{"jsonrpc":"2.0","id":"1","method":"system.ping"}"#).await;
    assert_eq!(strict.frame().await.unwrap()["result"]["pong"], true);
}

#[tokio::test]
async fn invalid_frames_get_an_error() {
    let world = World::start("").await;
    let mut socket = connect(&world).await;
    create(&mut socket, &world).await;
    for (frame, code) in [
        (r#"{"id":7,"method":"model.list"}"#, "INVALID_FORMAT"),
        (r#"{"method":"model.list"}"#, "INVALID_FORMAT"),
        (r#"{"id":"a"}"#, "INVALID_FORMAT"),
        ("{nonsense", "PARSE_ERROR"),
    ] {
        socket.send(frame).await;
        let frames = socket.until(|frame| frame["type"] == "system.error").await.pop().unwrap();
        assert_eq!(frames["data"]["code"], code, "{frame}");
        assert!(frames["timestamp"].is_string() && frames["data"]["message"].is_string());
    }
    for (method, params, code) in [
        ("no.such", json!({}), "METHOD_NOT_FOUND"),
        ("session.getState", json!({ "sessionId": "nobody" }), "SESSION_NOT_FOUND"),
        ("session.getState", json!({}), "INVALID_PARAMS"),
        ("tool.result", json!({ "sessionId": "nobody", "result": "x" }), "SESSION_NOT_FOUND"),
    ] {
        assert_eq!(socket.ask_legacy(method, params).await.unwrap_err()["code"], code);
    }
}

#[tokio::test]
async fn an_unbound_client_gets_all_sessions_and_a_bound_one_its_own() {
    let world = World::start("").await;
    let (mut all, mut bound, mut other) =
        (connect(&world).await, connect(&world).await, connect(&world).await);
    all.ask_legacy("system.ping", json!({})).await.unwrap();
    let mine = create(&mut bound, &world).await;
    let theirs = create(&mut other, &world).await;
    prompt(&mut bound, &mine, json!([{ "text": "mine" }])).await;
    bound.until(|frame| frame["type"] == "agent.ready").await;
    prompt(&mut other, &theirs, json!([{ "text": "theirs" }])).await;
    other.until(|frame| frame["type"] == "agent.ready").await;
    let readies = std::cell::Cell::new(0);
    let frames = all.until(|frame| {
        readies.set(readies.get() + usize::from(frame["type"] == "agent.ready"));
        readies.get() == 2
    });
    let frames = frames.await;
    for (id, text) in [(&mine, "mine"), (&theirs, "theirs")] {
        let of_it = |kind: &str| {
            let is = |frame: &&Value| frame["type"] == kind && frame["sessionId"] == id.as_str();
            frames.iter().filter(is).cloned().collect::<Vec<Value>>()
        };
        assert_eq!(of_it("agent.text_delta")[0]["data"]["delta"], text);
        let first = of_it("events.new")[0]["data"]["event"].clone();
        assert_eq!((&first["type"], &first["sequence"]), (&json!("session.start"), &json!(1)));
    }
    // Nothing of the other session came between these two turns.
    prompt(&mut bound, &mine, json!([{ "text": "again" }])).await;
    let frames = bound.until(|frame| frame["type"] == "agent.ready").await;
    let foreign = |frame: &&Value| frame["sessionId"] == theirs.as_str();
    assert_eq!(frames.iter().find(foreign), None);
    // A client that resumes another session gets the events of that one instead.
    let resumed = bound.ask_legacy("session.resume", of(&theirs)).await.unwrap();
    assert_eq!(resumed["sessionId"], theirs.as_str());
    prompt(&mut other, &theirs, json!([{ "text": "more" }])).await;
    let frames = bound.until(|frame| frame["type"] == "agent.ready").await;
    assert!(frames.iter().all(|frame| frame["sessionId"] == theirs.as_str()), "{frames:#?}");
}

#[tokio::test]
async fn a_client_that_connects_during_an_answer_gets_its_text() {
    let world = World::start("").await;
    std::fs::write(world.workspace().join("a"), "1\n").unwrap();
    let mut first = connect(&world).await;
    let id = create(&mut first, &world).await;
    let read = json!({ "name": "read_file", "args": { "path": "a" } });
    prompt(&mut first, &id, json!([{ "tools": [read] }, { "text": "half", "hang": true }])).await;
    first.until(|frame| frame["type"] == "agent.text_delta").await;

    let mut late = connect(&world).await;
    let state = late.ask_legacy("agent.getState", of(&id)).await.unwrap();
    assert_eq!(state["currentTurnText"], "half");
    let tools = state["tools"].as_array().unwrap();
    assert!(["shell", "ask_user"].iter().all(|name| tools.contains(&json!(name))), "{tools:?}");
    let call = &state["currentTurnToolCalls"][0];
    assert_eq!((&call["toolName"], &call["status"]), (&json!("read_file"), &json!("completed")));
    let frames = late.until(|frame| frame["type"] == "agent.text_delta").await;
    assert_eq!(frames.last().unwrap()["data"]["delta"], "half");
}

#[tokio::test]
async fn every_method_of_the_original_is_served() {
    let world = World::start("[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n").await;
    let mut socket = connect(&world).await;
    let id = create(&mut socket, &world).await;
    prompt(&mut socket, &id, json!([{ "text": "one" }])).await;
    socket.until(|frame| frame["type"] == "agent.ready").await;
    let has = |result: Value, members: &[&str]| {
        for member in members {
            assert!(result.get(member).is_some(), "{member} is not in {result}");
        }
        result
    };
    let of_session = [
        ("session.getState", &["workspaceId", "headEventId", "messages", "turnCount"][..]),
        ("session.resume", &["sessionId", "model", "messageCount", "lastActivity"]),
        ("session.getHead", &["sessionId", "headEventId", "headEvent"]),
        ("context.getSnapshot", &["currentTokens", "contextLimit", "usagePercent", "breakdown"]),
        ("context.getDetailedSnapshot", &["messages", "systemPromptContent", "toolsContent"]),
        ("context.shouldCompact", &["shouldCompact"]),
        ("context.canAcceptTurn", &["canProceed", "needsCompaction", "wouldExceedLimit"]),
        ("agent.getState", &["isRunning", "currentTurn", "messageCount", "tools"]),
        ("events.getHistory", &["events", "hasMore", "oldestEventId"]),
        ("events.getSince", &["events", "hasMore", "nextCursor"]),
        ("events.subscribe", &["sessionId"]),
        ("tree.getBranches", &["branches"]),
        ("agent.abort", &["aborted"]),
        ("context.compact", &["success", "tokensBefore", "tokensAfter", "compressionRatio"]),
        ("events.unsubscribe", &["success"]),
    ];
    for (method, members) in of_session {
        let answer = socket.ask_legacy(method, of(&id)).await;
        has(answer.unwrap_or_else(|error| panic!("{method}: {error}")), members);
    }
    let listed = socket.ask_legacy("session.list", json!({ "limit": 1 })).await.unwrap();
    let members = ["sessionId", "inputTokens", "outputTokens", "lastActivity", "isActive", "cost"];
    has(listed["sessions"][0].clone(), &members);
    let models = socket.ask_legacy("model.list", json!({})).await.unwrap();
    has(models["models"][0].clone(), &["id", "name", "provider", "contextWindow"]);
    let switch = json!({ "sessionId": id, "model": "fake/other" });
    let switched = socket.ask_legacy("model.switch", switch).await.unwrap();
    assert_eq!(switched["newModel"], "fake/other");
    let fork = json!({ "sessionId": id, "fromEventId": format!("evt_{id}_2") });
    let fork = socket.ask_legacy("session.fork", fork).await.unwrap();
    let fork = has(fork, &["newSessionId", "rootEventId", "forkedFromEventId"]);
    let fork = fork["newSessionId"].as_str().unwrap();
    assert_eq!(socket.ask_legacy("session.delete", of(fork)).await.unwrap()["deleted"], true);
    has(socket.ask_legacy("system.ping", json!({})).await.unwrap(), &["pong", "timestamp"]);
    has(socket.ask_legacy("system.getInfo", json!({})).await.unwrap(), &["version"]);
    let question = json!({ "name": "ask_user", "args": { "question": "why?" }, "id": "call_1" });
    socket.ask_legacy("session.resume", of(&id)).await.unwrap();
    prompt(&mut socket, &id, json!([{ "tools": [question] }, { "text": "done" }])).await;
    let frames = socket.until(|frame| frame["type"] == "agent.question").await.pop().unwrap();
    let call = frames["data"]["toolCallId"].clone();
    let result = json!({ "sessionId": id, "toolCallId": call, "result": "because" });
    let answered = socket.ask_legacy("tool.result", result).await.unwrap();
    assert_eq!((&answered["success"], &answered["toolCallId"]), (&json!(true), &call));
    socket.until(|frame| frame["type"] == "agent.ready").await;
    let late = json!({ "sessionId": id, "toolCallId": call, "result": "because" });
    assert_eq!(socket.ask_legacy("tool.result", late).await.unwrap_err()["code"], "NOT_FOUND");
}

#[tokio::test]
async fn many_unbound_clients_can_send_requests() {
    let world = World::start("").await;
    let mut first = connect(&world).await;
    let id = create(&mut first, &world).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..16 {
        let (mut socket, id) = (connect(&world).await, id.clone());
        clients.spawn(async move {
            for n in 0..8 {
                let model = format!("fake/m{client}-{n}");
                let params = json!({ "sessionId": id, "model": model });
                socket.ask_legacy("model.switch", params).await.unwrap();
            }
        });
    }
    clients.join_all().await;
    let head = first.ask_legacy("session.getHead", of(&id)).await.unwrap();
    assert_eq!(head["headEvent"]["sequence"], 2 + 16 * 8);
}
