//! Subagents, as clients of the session that they work for see them.

use serde_json::{Value, json};

use super::{ASKING, code, of};
use crate::daemon::World;
use crate::socket::{kinds, text};

fn spawn(task: &str, script: &Value) -> Value {
    let task = format!("{task} {{{{script: {script}}}}}");
    json!({ "name": "spawn_agent", "args": { "task": task } })
}

#[tokio::test]
async fn a_question_of_a_subagent_is_seen_and_answered_above() {
    let world = World::start(ASKING).await;
    let (mut socket, mut other) = (world.socket().await, world.socket().await);
    let id = socket.create(world.workspace()).await;
    let shell = json!({ "name": "shell", "args": { "command": "echo hi" } });
    let work = json!([{ "tools": [shell] }, { "text": "it ran" }]);
    let script = json!([{ "tools": [spawn("run it", &work)] }, { "text": "done" }]);
    socket.say(&id, script).await.unwrap();
    let asked = socket.until_told("agent.approval").await.pop().unwrap()["params"].clone();
    assert_eq!((&asked["sessionId"], &asked["toolName"]), (&json!(id), &json!("shell")));
    let child = asked["subagentSessionId"].as_str().unwrap().to_owned();
    assert_ne!(child, id);
    let shown = other.ask("session.get", of(&id)).await.unwrap();
    assert_eq!(shown["pending"][0]["subagentSessionId"], child.as_str(), "{shown}");
    let response = json!({ "sessionId": id, "response": true, "toolId": asked["toolId"] });
    other.ask("agent.respond", response.clone()).await.unwrap();
    assert_eq!(code(other.ask("agent.respond", response).await), -32003);
    let told = socket.until_told("agent.turn_complete").await;
    assert_eq!(text(&told), "done");
    let complete = told.iter().find(|news| news["method"] == "subagent.complete").unwrap();
    assert_eq!(complete["params"]["result"], "it ran");
    let events = socket.events(&id, 0).await;
    for kind in ["subagent.approval_requested", "subagent.approval_answered"] {
        let event = events.iter().find(|event| event["type"] == kind).unwrap();
        assert_eq!(event["payload"]["sessionId"], child.as_str());
    }
    socket.ask("session.delete", of(&id)).await.unwrap();
    assert_eq!(code(socket.ask("session.get", of(&child)).await), -32000);
}

#[tokio::test]
async fn a_kill_loses_neither_the_subagent_nor_its_parent() {
    let mut world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    // Whenever it is asked, the answer takes long enough to be in the middle of it.
    let work = json!([{ "text": "found", "delay_ms": 1500 }]);
    let script = json!([{ "tools": [spawn("find it", &work)] }, { "text": "read" }]);
    socket.say(&id, script).await.unwrap();
    socket.until_told("subagent.progress").await;
    world.kill();
    world.restart();
    let mut socket = world.socket().await;
    let synced = json!({ "sessionId": id, "lastSequence": 0 });
    let page = socket.ask("events.sync", synced).await.unwrap();
    let events = page["events"].as_array().unwrap().clone();
    if !kinds(&events).contains(&"turn.end") {
        socket.until_told("agent.turn_complete").await;
    }
    let events = socket.events(&id, 0).await;
    let of_kind = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of_kind("subagent.spawn"), of_kind("subagent.complete")), (1, 1));
    assert_eq!(of_kind("turn.end"), 1);
    let result = events.iter().find(|event| event["type"] == "tool.result").unwrap();
    assert_eq!(result["payload"]["content"], "found");
}

#[tokio::test]
async fn a_subagent_keeps_within_its_budget() {
    let world =
        World::start("[approval]\nkinds = []\n[verify]\nauto = false\n[subagents]\nsteps = 1\n")
            .await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let shell = json!({ "name": "shell", "args": { "command": "true" } });
    let work = json!([{ "text": "one moment", "tools": [shell] }, { "text": "never said" }]);
    let script = json!([{ "tools": [spawn("work", &work)] }, { "text": "done" }]);
    let told = socket.turn(&id, script).await;
    let complete = told.iter().find(|news| news["method"] == "subagent.complete").unwrap();
    assert_eq!(complete["params"]["success"], false);
    assert_eq!(complete["params"]["result"], "max turn iterations reached");
}
