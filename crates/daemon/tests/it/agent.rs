//! The agent-server protocol, over real sockets.

mod legacy;
mod limits;
mod original;
mod service;
mod subagents;

use reqwest::Method;
use serde_json::{Value, json};

use crate::daemon::World;
use crate::socket::{Socket, kinds, stored, text};

const WITH_APPROVALS: &str = "[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n";

fn of(session: &str) -> Value {
    json!({ "sessionId": session })
}

fn code(answer: Result<Value, Value>) -> i64 {
    answer.unwrap_err()["code"].as_i64().unwrap()
}

#[tokio::test]
async fn a_turn_is_streamed_and_stored() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let script = json!([
        { "text": "look: ", "tools": [{ "name": "shell", "args": { "command": "echo hi" } }] },
        { "text": "done" },
    ]);
    let frames = socket.turn(&id, script).await;
    assert_eq!(text(&frames), "look: done");
    let methods: Vec<&str> =
        frames.iter().filter_map(|notification| notification["method"].as_str()).collect();
    assert!(methods.contains(&"agent.tool_start") && methods.contains(&"agent.tool_end"));
    let complete = &frames[frames.len() - 1]["params"];
    assert_eq!(complete["turn"], 1);
    assert!(complete["tokenUsage"]["inputTokens"].is_u64(), "{complete}");
    let events = socket.events(&id, 0).await;
    let wanted = ["session.start", "message.user", "message.assistant", "tool.call", "tool.result"];
    for kind in wanted {
        assert!(kinds(&events).contains(&kind), "{kind}: {:?}", kinds(&events));
    }
    let user = events.iter().find(|event| event["type"] == "message.user").unwrap();
    assert_eq!(user["payload"]["turn"], 1);
    let answers: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "message.assistant").collect();
    assert_eq!(answers[0]["payload"]["content"][0]["text"], "look: ");
    assert_eq!(answers[1]["payload"]["content"][0]["text"], "done");
    let shown = socket.ask("session.get", of(&id)).await.unwrap();
    assert_eq!(shown["session"]["status"], "idle");
    let listed = socket
        .ask("session.list", json!({ "workspaceId": world.workspace(), "limit": 5 }))
        .await
        .unwrap();
    assert_eq!(listed["sessions"][0]["id"], id.as_str());
    let elsewhere = socket.ask("session.list", json!({ "workspaceId": "/nowhere" })).await.unwrap();
    assert_eq!(elsewhere["sessions"], json!([]));
}

#[tokio::test]
async fn pages_are_the_same_from_any_start() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let live = {
        let mut frames = socket.turn(&id, json!([{ "text": "one", "thought": "hm" }])).await;
        frames.extend(socket.turn(&id, json!([{ "deltas": ["t", "w", "o"] }])).await);
        stored(&frames)
    };
    let all = socket.events(&id, 0).await;
    let sequences: Vec<u64> = all.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    for after in 0..=sequences[sequences.len() - 1] {
        let page = socket.events(&id, after).await;
        let rest: Vec<&Value> =
            all.iter().filter(|event| event["sequence"].as_u64().unwrap() > after).collect();
        let content = |event: &Value| (event["id"].clone(), event["payload"].clone());
        assert_eq!(
            page.iter().map(content).collect::<Vec<_>>(),
            rest.into_iter().map(content).collect::<Vec<_>>(),
            "after {after}"
        );
    }
    for event in live {
        assert!(all.contains(&event), "sent live but not stored: {event}");
    }
}

#[tokio::test]
async fn a_client_that_reconnects_catches_up_without_a_gap() {
    let world = World::start("").await;
    let (mut first, mut second) = (world.socket().await, world.socket().await);
    let id = first.create(world.workspace()).await;
    first.turn(&id, json!([{ "text": "one" }])).await;
    let synced =
        second.ask("events.sync", json!({ "sessionId": id, "lastSequence": 0 })).await.unwrap();
    let mut seen: Vec<Value> = synced["events"].as_array().unwrap().clone();
    let frames = first.turn(&id, json!([{ "text": "two" }])).await;
    let also = second.until_notified("agent.turn_complete").await;
    assert_eq!(text(&frames), text(&also));
    seen.extend(stored(&also));
    let all = first.events(&id, 0).await;
    let ids = |events: &[Value]| -> Vec<Value> {
        events.iter().map(|event| event["id"].clone()).collect()
    };
    assert_eq!(ids(&seen), ids(&all));
}

#[tokio::test]
async fn a_busy_agent_refuses_or_queues_and_can_be_aborted() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    socket.say(&id, json!([{ "text": "half", "hang": true }])).await.unwrap();
    world.model.streaming(1).await;
    assert_eq!(code(socket.say(&id, json!([{ "text": "b" }])).await), -32001);
    let content = "go {{script: [{\"text\": \"next\"}]}}";
    let queued = socket
        .ask("agent.message", json!({ "sessionId": id, "content": content, "queue": true }))
        .await
        .unwrap();
    assert_eq!(queued["queued"], true);
    assert_eq!(socket.ask("agent.abort", of(&id)).await.unwrap(), json!({ "aborted": true }));
    let frames = socket.until_notified("agent.turn_complete").await;
    assert!(text(&frames).ends_with("next"));
    assert_eq!(socket.ask("agent.abort", of(&id)).await.unwrap(), json!({ "aborted": false }));
}

#[tokio::test]
async fn a_fork_has_the_history_and_survives_its_source() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    socket.turn(&id, json!([{ "text": "one" }])).await;
    let past = socket.events(&id, 0).await;
    socket.turn(&id, json!([{ "text": "two" }])).await;
    let at = past[past.len() - 1]["id"].clone();
    let fork = socket.ask("session.fork", json!({ "sessionId": id, "eventId": at })).await.unwrap();
    assert_eq!(fork["forkedFromEventId"], at);
    let child = fork["newSessionId"].as_str().unwrap().to_owned();
    let session_forks = socket.ask("tree.getBranches", of(&id)).await.unwrap();
    assert_eq!(session_forks["branches"][0]["id"], child.as_str());
    let deleted = socket.ask("session.delete", of(&id)).await.unwrap();
    assert_eq!(deleted["success"], true);
    assert_eq!(code(socket.ask("session.get", of(&id)).await), -32000);
    let events = socket.events(&child, 0).await;
    let root = events.iter().find(|event| event["type"] == "session.fork").unwrap();
    assert_eq!(root["parentId"], at);
    assert_eq!(root["payload"], json!({ "sourceSessionId": id, "sourceEventId": at }));
    let frames = socket.turn(&child, json!([{ "text": "three" }])).await;
    assert_eq!(text(&frames), "three");
    let shown = socket.ask("session.get", of(&child)).await.unwrap();
    assert_eq!(shown["session"]["turnCount"], 2);
    assert_eq!(
        code(socket.ask("session.fork", json!({ "sessionId": child, "eventId": 999 })).await),
        -32602
    );
}

#[tokio::test]
async fn an_event_must_belong_to_the_session_or_its_source() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let other = socket.create(world.workspace()).await;
    for session in [&id, &other] {
        socket.turn(session, json!([{ "text": "one" }])).await;
    }
    let foreign = socket.events(&other, 0).await[2]["id"].clone();
    for (method, member) in [("session.fork", "eventId"), ("events.list", "after")] {
        let answer = socket.ask(method, json!({ "sessionId": id, member: foreign })).await;
        assert_eq!(code(answer), -32602, "{method}");
    }
    // A fork shares the events before it and none after.
    let own = socket.events(&id, 0).await;
    let fork = json!({ "sessionId": id, "eventId": own[2]["id"] });
    let child = socket.ask("session.fork", fork).await.unwrap()["newSessionId"].clone();
    let shared = json!({ "sessionId": child, "after": own[1]["id"] });
    let shown = socket.ask("events.list", shared).await.unwrap();
    assert_eq!(shown["events"][0]["sequence"], own[2]["sequence"]);
    let later = json!({ "sessionId": child, "after": own[3]["id"] });
    assert_eq!(code(socket.ask("events.list", later).await), -32602);
    let beyond = json!({ "sessionId": id, "lastSequence": 1000 });
    let refused = socket.ask("events.sync", beyond).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("position 1000 is after the end"));
}

#[tokio::test]
async fn syncing_during_an_answer_sends_its_text_after_the_last_event() {
    let world = World::start("").await;
    let mut first = world.socket().await;
    let id = first.create(world.workspace()).await;
    // Long enough that part of it is in the journal before the answer ends.
    let long = "word ".repeat(8000);
    let go = world.home.path().join("go");
    let script = json!([{ "deltas": [long, "again ", "end"], "hold_until": go }]);
    first.say(&id, script).await.unwrap();
    let held =
        |frame: &Value| frame["params"]["delta"].as_str().is_some_and(|it| it.ends_with("again "));
    let frames = first.until(held).await;
    let last = stored(&frames).last().unwrap()["sequence"].as_u64().unwrap();
    let shown = loop {
        let shown = first.ask("session.get", of(&id)).await.unwrap();
        if shown["lastSequence"].as_u64() > Some(last) {
            break shown["lastSequence"].clone();
        }
    };
    let mut late = Vec::new();
    for known in [json!(last), shown] {
        let mut socket = world.socket().await;
        let sync = json!({ "sessionId": id, "lastSequence": known });
        let synced = socket.ask("events.sync", sync).await.unwrap();
        assert_eq!((&synced["events"], &synced["lastSequence"]), (&json!([]), &json!(last)));
        late.push(socket);
    }
    std::fs::write(&go, "").unwrap();
    for mut socket in late {
        let frames = socket.until_notified("agent.turn_complete").await;
        assert!(text(&frames) == format!("{long}again end"), "{} bytes", text(&frames).len());
        let answer = stored(&frames).into_iter().find(|event| event["type"] == "message.assistant");
        let content = answer.unwrap()["payload"]["content"][0]["text"].clone();
        assert!(content == text(&frames), "the stored answer differs");
    }
}

#[tokio::test]
async fn questions_and_approvals_can_be_answered_after_a_restart() {
    let mut world = World::start(WITH_APPROVALS).await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let script = json!([
        { "tools": [{ "name": "ask_user", "args": { "question": "which colour?" } }] },
        { "tools": [{ "name": "shell", "args": { "command": "true" } }] },
        { "text": "done" },
    ]);
    socket.say(&id, script).await.unwrap();
    let frames = socket.until_notified("agent.question").await;
    let question = &frames[frames.len() - 1]["params"];
    assert_eq!(question["arguments"]["question"], "which colour?");
    world.kill();
    world.restart();
    let mut socket = world.socket().await;
    let shown = socket.ask("session.get", of(&id)).await.unwrap();
    assert_eq!(shown["pending"][0]["kind"], "question");
    socket.ask("agent.respond", json!({ "sessionId": id, "response": "blue" })).await.unwrap();
    let frames = socket.until_notified("agent.approval").await;
    let answered = |event: &&Value| event["type"] == "tool.result";
    let events = stored(&frames);
    assert_eq!(events.iter().find(answered).unwrap()["payload"]["content"], "blue");
    let response = json!({ "approved": true });
    socket.ask("agent.respond", json!({ "sessionId": id, "response": response })).await.unwrap();
    assert_eq!(text(&socket.until_notified("agent.turn_complete").await), "done");
    let late = socket.ask("agent.respond", json!({ "sessionId": id, "response": "red" })).await;
    assert_eq!(code(late), -32602);
}

#[tokio::test]
async fn models_and_context_are_shown_and_changed() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    assert_eq!(
        socket.ask("context.compact", of(&id)).await.unwrap()["compacted"],
        false,
        "there is nothing to compact"
    );
    socket.turn(&id, json!([{ "text": "one" }])).await;
    let models = socket.ask("model.list", json!({})).await.unwrap();
    assert!(models["models"].as_array().is_some_and(|models| !models.is_empty()), "{models}");
    let params = json!({ "sessionId": id, "model": "fake/other" });
    let switched = socket.ask("model.switch", params).await.unwrap();
    assert_eq!(
        (&switched["success"], &switched["previousModel"]),
        (&json!(true), &json!("fake/fake"))
    );
    let unknown = socket.ask("model.switch", json!({ "sessionId": id, "model": "nobody" })).await;
    assert_eq!(code(unknown), -32602);
    let context = socket.ask("context.get", of(&id)).await.unwrap()["context"].clone();
    assert!(context["breakdown"]["messages"].as_u64().unwrap() > 0, "{context}");
    let compacted = socket.ask("context.compact", of(&id)).await.unwrap();
    assert_eq!(compacted["compacted"], true, "{compacted}");
    let events = socket.events(&id, 0).await;
    let compaction = events.iter().find(|event| event["type"] == "context.compaction").unwrap();
    assert_eq!(compaction["payload"]["turnsBefore"], 1);
    assert_eq!(compaction["payload"]["turnsAfter"], 0);
}

#[tokio::test]
async fn a_client_of_the_original_server_is_served() {
    let world = World::start("").await;
    let mut socket = Socket::connect(&format!("{}/ws", world.agent())).await;
    let params = json!({ "workingDirectory": world.workspace() });
    let frame = json!({ "id": "req_1", "method": "session.create", "params": params });
    socket.send(&frame.to_string()).await;
    let hello = socket.frame().await.unwrap();
    assert_eq!(hello["type"], "system.connected");
    let created = socket.frame().await.unwrap();
    assert_eq!((&created["id"], &created["success"]), (&json!("req_1"), &json!(true)));
    let id = created["result"]["sessionId"].clone();
    let params = json!({ "sessionId": id, "prompt": "go {{script: [{\"text\": \"hi\"}]}}" });
    let frame = json!({ "id": "req_2", "method": "agent.prompt", "params": params });
    socket.send(&frame.to_string()).await;
    let frames = socket.until(|frame| frame["type"] == "agent.ready").await;
    let answer = frames.iter().find(|frame| frame["id"] == "req_2").unwrap();
    assert_eq!(answer["result"]["acknowledged"], true);
    let delta = frames.iter().find(|frame| frame["type"] == "agent.text_delta").unwrap();
    assert_eq!(delta["data"], json!({ "delta": "hi" }));
    assert_eq!(delta["sessionId"], id);
    assert!(delta["timestamp"].is_string());
    let complete = frames.iter().find(|frame| frame["type"] == "agent.complete").unwrap();
    assert_eq!(complete["data"]["success"], true);
    let frame = json!({ "id": "req_3", "method": "nothing.such" });
    socket.send(&frame.to_string()).await;
    let refused = socket.until(|frame| frame["id"] == "req_3").await.pop().unwrap();
    assert_eq!(refused["error"]["code"], "METHOD_NOT_FOUND");
}

#[tokio::test]
async fn bad_frames_are_refused_and_the_connection_stays_open() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    for (frame, code) in [
        ("{nonsense", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"model.list\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no.such\"}", -32601),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.create\"}", -32602),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.get\",\"params\":{\"sessionId\":\"x\"}}",
            -32000,
        ),
    ] {
        socket.send(frame).await;
        assert_eq!(socket.frame().await.unwrap()["error"]["code"], code, "{frame}");
    }
    socket.ask("session.list", json!({})).await.unwrap();
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let health = world.health();
    let (status, body) = health.get("/health").await;
    assert_eq!((status, &body["status"]), (200, &json!("ok")));
    assert!(body["version"].is_string());
    let (status, metrics) = health.get("/metrics").await;
    assert_eq!(status, 200);
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("quintet_up 1"), "{metrics}");
    assert!(!metrics.contains("quintet_turn_overhead_seconds"), "no turn has ended: {metrics}");
    let id = socket.create(world.workspace()).await;
    socket.turn(&id, json!([{ "text": "hello" }])).await;
    let (_, metrics) = health.get("/metrics").await;
    let added = |part: &str, quantile: &str| {
        let name =
            format!("quintet_turn_overhead_seconds{{part=\"{part}\",quantile=\"{quantile}\"}} ");
        let line = metrics.as_str().unwrap().lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("no {name}in {metrics}")).parse::<f64>().unwrap()
    };
    assert!(added("asked", "0.5") > 0.0);
    assert!(added("asked", "0.95") < added("total", "0.95"));
    let foreign = health.request(Method::GET, "/health").header("origin", "https://evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn a_call_can_start_a_subagent() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let spawn = json!({ "name": "spawn_agent", "args": { "task": "count" } });
    let frames = socket.turn(&id, json!([{ "tools": [spawn] }, { "text": "done" }])).await;
    let notification = |method: &str| {
        let found = frames.iter().find(|notification| notification["method"] == method);
        found.unwrap_or_else(|| panic!("no {method} in {frames:#?}"))["params"].clone()
    };
    let spawned = notification("subagent.spawn");
    assert_eq!((&spawned["parentSessionId"], &spawned["task"]), (&json!(id), &json!("count")));
    assert_eq!(notification("subagent.complete")["result"], "echo: count");
    let child = spawned["subagentSessionId"].as_str().unwrap();
    let shown = socket.ask("session.get", of(child)).await.unwrap();
    assert_eq!(shown["session"]["status"], "idle");
    let events = socket.events(&id, 0).await;
    for kind in ["subagent.spawn", "subagent.progress", "subagent.complete"] {
        assert!(kinds(&events).contains(&kind), "{kind}");
    }
}

#[tokio::test]
async fn clearing_the_context_keeps_the_journal() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    socket.turn(&id, json!([{ "text": "one" }])).await;
    let before = socket.events(&id, 0).await.len();
    let cleared = socket.ask("context.clear", of(&id)).await.unwrap();
    assert_eq!(cleared["success"], true);
    assert!(cleared["tokensAfter"].as_u64() < cleared["tokensBefore"].as_u64(), "{cleared}");
    socket.turn(&id, json!([{ "text": "two" }])).await;
    let request = world.model.calls().pop().unwrap();
    let messages = request["messages"].as_array().unwrap().iter();
    assert_eq!(messages.filter(|message| message["role"] != "system").count(), 1, "{request}");
    assert!(socket.events(&id, 0).await.len() > before);
}
