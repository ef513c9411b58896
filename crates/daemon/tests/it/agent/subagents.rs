//! Subagents, as clients of the parent session see them.

use serde_json::{Value, json};

use super::{WITH_APPROVALS, code, of};
use crate::daemon::World;
use crate::socket::{Socket, kinds, text};

fn spawn(task: &str, script: &Value) -> Value {
    let task = format!("{task} {{{{script: {script}}}}}");
    json!({ "name": "spawn_agent", "args": { "task": task } })
}

#[tokio::test]
async fn an_approval_of_a_subagent_is_answered_at_the_parent() {
    let world = World::start(WITH_APPROVALS).await;
    let (mut socket, mut other) = (world.socket().await, world.socket().await);
    let id = socket.create(world.workspace()).await;
    let shell = json!({ "name": "shell", "args": { "command": "echo hi" } });
    let work = json!([{ "tools": [shell] }, { "text": "it ran" }]);
    let script = json!([{ "tools": [spawn("run it", &work)] }, { "text": "done" }]);
    socket.say(&id, script).await.unwrap();
    let request = socket.until_notified("agent.approval").await.pop().unwrap()["params"].clone();
    assert_eq!((&request["sessionId"], &request["toolName"]), (&json!(id), &json!("shell")));
    let child = request["subagentSessionId"].as_str().unwrap().to_owned();
    assert_ne!(child, id);
    let shown = other.ask("session.get", of(&id)).await.unwrap();
    assert_eq!(shown["pending"][0]["subagentSessionId"], child.as_str(), "{shown}");
    let response = json!({ "sessionId": id, "response": true, "toolId": request["toolId"] });
    other.ask("agent.respond", response.clone()).await.unwrap();
    assert_eq!(code(other.ask("agent.respond", response).await), -32602);
    let frames = socket.until_notified("agent.turn_complete").await;
    assert_eq!(text(&frames), "done");
    let complete =
        frames.iter().find(|notification| notification["method"] == "subagent.complete").unwrap();
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
async fn a_subagent_and_its_parent_survive_a_kill() {
    let mut world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    // The answer takes long enough to be killed during it.
    let work = json!([{ "text": "found", "delay_ms": 1500 }]);
    let script = json!([{ "tools": [spawn("find it", &work)] }, { "text": "read" }]);
    socket.say(&id, script).await.unwrap();
    socket.until_notified("subagent.progress").await;
    world.kill();
    world.restart();
    let mut socket = world.socket().await;
    let synced = json!({ "sessionId": id, "lastSequence": 0 });
    let page = socket.ask("events.sync", synced).await.unwrap();
    let events = page["events"].as_array().unwrap().clone();
    if !kinds(&events).contains(&"turn.end") {
        socket.until_notified("agent.turn_complete").await;
    }
    let events = socket.events(&id, 0).await;
    let of_kind = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of_kind("subagent.spawn"), of_kind("subagent.complete")), (1, 1));
    assert_eq!(of_kind("turn.end"), 1);
    let result = events.iter().find(|event| event["type"] == "tool.result").unwrap();
    assert_eq!(result["payload"]["content"], "found");
}

#[tokio::test]
async fn a_subagent_has_its_own_step_limit() {
    let world =
        World::start("[approval]\nkinds = []\n[verify]\nauto = false\n[subagents]\nsteps = 1\n")
            .await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let shell = json!({ "name": "shell", "args": { "command": "true" } });
    let work = json!([{ "text": "one moment", "tools": [shell] }, { "text": "never said" }]);
    let script = json!([{ "tools": [spawn("work", &work)] }, { "text": "done" }]);
    let frames = socket.turn(&id, script).await;
    let complete =
        frames.iter().find(|notification| notification["method"] == "subagent.complete").unwrap();
    assert_eq!(complete["params"]["success"], false);
    assert_eq!(complete["params"]["result"], "max turn iterations reached");
}

#[tokio::test]
async fn an_interrupted_turn_continues_after_approval() {
    let asking = "[approval]\nkinds = []\n[verify]\nauto = false\n[recovery]\npolicy = \"ask\"\n";
    let mut world = World::start(asking).await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let work = spawn("work", &json!([{ "text": "part", "hang": true }]));
    socket.say(&id, json!([{ "tools": [work] }, { "text": "all done" }])).await.unwrap();
    world.model.streaming(1).await;
    world.kill();
    world.restart();
    let mut socket = world.socket().await;
    let pending = async |socket: &mut Socket| {
        let shown = socket.ask("session.get", json!({ "sessionId": id })).await.unwrap();
        shown["session"]["pending"].clone()
    };
    let own = pending(&mut socket).await;
    assert_eq!((&own[0]["kind"], &own[0]["toolName"]), (&json!("held"), &json!("resume_turn")));
    let yes = json!({ "sessionId": id, "response": true });
    socket.ask("agent.respond", yes.clone()).await.unwrap();
    let request = socket.until_notified("agent.approval").await.pop().unwrap();
    let (params, waits) = (&request["params"], pending(&mut socket).await);
    assert_eq!(params["toolName"], "resume_turn");
    assert_eq!(waits[0]["subagentSessionId"], params["subagentSessionId"], "{waits}");
    let no =
        json!({ "sessionId": id, "response": { "toolId": params["toolId"], "approved": false } });
    socket.ask("agent.respond", no).await.unwrap();
    socket.until_notified("agent.turn_complete").await;
    assert_eq!(pending(&mut socket).await, json!([]));
}

#[tokio::test]
async fn clients_of_the_original_get_all_members_about_subagents() {
    let world = World::start("").await;
    let mut socket = Socket::connect(&format!("{}/ws", world.agent())).await;
    let params = json!({ "workingDirectory": world.workspace() });
    let created = socket.ask_legacy("session.create", params).await.unwrap();
    let id = created["sessionId"].as_str().unwrap().to_owned();
    let mut frames = Vec::new();
    for work in [json!([{ "text": "found" }]), json!([{ "status": 400, "message": "no" }])] {
        let script = json!([{ "tools": [spawn("work", &work)] }, { "text": "done" }]);
        let script = script.to_string().replace("{{script:", "\\u007b{script:");
        let prompt = json!({ "sessionId": id, "prompt": format!("go {{{{script: {script}}}}}") });
        socket.ask_legacy("agent.prompt", prompt).await.unwrap();
        frames.extend(socket.until(|frame| frame["type"] == "agent.ready").await);
    }
    for (name, stored, members) in [
        ("spawned", "subagent.spawned", &["task", "model", "workingDirectory", "toolCallId"][..]),
        ("status", "subagent.status_update", &["status", "currentTurn"]),
        (
            "completed",
            "subagent.completed",
            &["resultSummary", "fullOutput", "totalTurns", "duration"],
        ),
        ("failed", "subagent.failed", &["error", "duration"]),
    ] {
        let kind = format!("agent.subagent_{name}");
        let live = frames.iter().find(|frame| frame["type"] == kind.as_str());
        let live = &live.unwrap_or_else(|| panic!("{kind} was not sent"))["data"];
        let read = json!({ "sessionId": id, "types": [stored] });
        let history = socket.ask_legacy("events.getHistory", read).await.unwrap();
        let event = &history["events"][0]["payload"];
        for member in members.iter().chain(&["subagentSessionId"]) {
            assert!(!live[member].is_null(), "{kind} lacks {member}: {live}");
            assert!(!event[member].is_null(), "{stored} lacks {member}: {event}");
        }
    }
}
