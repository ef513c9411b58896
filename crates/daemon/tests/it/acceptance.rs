//! The five acceptance tests of the harness specification.

use serde_json::json;

use crate::client::{kinds, over};
use crate::daemon::World;

const ASKING: &str = "[approval]\nkinds = [\"write\", \"exec\"]\n[verify]\nauto = false\n";

#[tokio::test]
async fn creating_a_session_returns_an_id_and_creates_session_json() {
    let world = World::start("").await;
    let id = world.client().create(world.workspace()).await;
    assert!(id.starts_with("sess_"));
    let file = world.home.path().join("data/sessions").join(&id).join("session.json");
    let text = std::fs::read_to_string(file).unwrap();
    let session: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&session["id"], &session["status"]), (&json!(id), &json!("active")));
    assert!(text.starts_with("{\n  \"") && text.ends_with("}\n"));
}

#[tokio::test]
async fn a_message_emits_message_added_and_turn_started() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let turn = client.say(&id, json!([{ "text": "hello" }])).await;
    let events = client.until_over(&id).await;
    assert_eq!(
        kinds(&events),
        [
            "session_created",
            "message_added",
            "turn_started",
            "model_resolved",
            "model_output_delta",
            "model_output_completed",
            "message_added",
            "turn_completed"
        ]
    );
    assert!(events[1..].iter().all(|event| event.json["turn_id"] == turn));
}

#[tokio::test]
async fn tool_calls_emit_started_and_completed() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let call = json!({ "name": "shell", "args": { "command": "echo hello" } });
    client.say(&id, json!([{ "tools": [call] }, { "text": "done" }])).await;
    let events = client.until_over(&id).await;
    let find = |kind: &str| &events.iter().find(|event| event.kind() == kind).unwrap().json["data"];
    assert_eq!(find("tool_call_started")["input"]["command"], "echo hello");
    let completed = find("tool_call_completed");
    assert_eq!((&completed["tool"], &completed["ok"]), (&json!("shell"), &json!(true)));
    assert!(completed["output"].as_str().unwrap().contains("hello"));
    assert_eq!(completed["tool_call_id"], find("tool_call_started")["tool_call_id"]);
}

#[tokio::test]
async fn approvals_gate_tool_execution_when_policy_requires_it() {
    let world = World::start(ASKING).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let call = json!({ "name": "shell", "args": { "command": "touch proof" } });
    client.say(&id, json!([{ "tools": [call] }, { "text": "done" }])).await;
    let events = client.until(&id, |event| event.kind() == "approval_requested").await;
    assert_eq!(client.session(&id).await["status"], "waiting_approval");
    assert!(!world.workspace().join("proof").exists());
    let asked = &events[events.len() - 1].json["data"];
    assert_eq!(asked["input"]["command"], "touch proof");
    let call = asked["tool_call_id"].as_str().unwrap();
    assert_eq!(client.approve(&id, call, "approve").await, (200, json!({ "ok": true })));
    let events = client.until_over(&id).await;
    let order = kinds(&events);
    let place = |kind: &str| order.iter().position(|known| known == kind).unwrap();
    assert!(place("approval_requested") < place("approval_granted"));
    assert!(place("approval_granted") < place("tool_call_started"));
    assert!(world.workspace().join("proof").exists());
}

#[tokio::test]
async fn verification_runs_after_a_write_and_emits_events_for_command_results() {
    let world =
        World::start("[approval]\nkinds = []\n[verify]\ncommands = [\"test -e fixed\"]\n").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let shell = |command: &str| json!({ "name": "shell", "args": { "command": command } });
    client
        .say(
            &id,
            json!([
                { "tools": [shell("touch broken")] },
                { "text": "I think that is it." },
                { "tools": [shell("touch fixed")] },
                { "text": "Now it is." },
            ]),
        )
        .await;
    let events = client.until(&id, over).await;
    let checks: Vec<bool> = events
        .iter()
        .filter(|event| {
            event.kind() == "tool_call_completed" && event.json["data"]["tool"] == "verify"
        })
        .map(|event| {
            let output = event.json["data"]["output"].as_str().unwrap();
            assert!(output.contains("test -e fixed") && output.contains("exit_code"), "{output}");
            event.json["data"]["ok"].as_bool().unwrap()
        })
        .collect();
    assert_eq!(checks, [false, true]);
    assert_eq!(events[events.len() - 1].json["data"]["verified"], true);
    // The model saw why the first check failed.
    let prompt = world.model.calls()[2]["messages"].to_string();
    assert!(prompt.contains("verify") && prompt.contains("exit_code"), "{prompt}");
}
