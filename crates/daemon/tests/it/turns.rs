//! Tests of turns and how they end.

use serde_json::{Value, json};

use crate::client::{Client, Event, kinds, over, text};
use crate::daemon::World;

const APPROVE_COMMANDS: &str = "[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n";

fn shell(command: &str) -> Value {
    json!({ "name": "shell", "args": { "command": command } })
}

async fn pending_approval(client: &Client, session: &str) -> String {
    let events = client.until(session, |event| event.kind() == "approval_requested").await;
    events[events.len() - 1].json["data"]["tool_call_id"].as_str().unwrap().into()
}

fn last(events: &[Event]) -> &Event {
    &events[events.len() - 1]
}

#[tokio::test]
async fn a_busy_session_refuses_a_second_turn_and_stores_nothing() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "a", "hang": true }])).await;
    world.model.streaming(1).await;
    let refused = client.try_say(&id, json!([{ "text": "b" }])).await;
    assert_eq!(refused, (500, json!({ "error": format!("session already running: {id}") })));
    assert_eq!(client.session(&id).await["turns"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_without_auto_run_waits_and_can_be_started() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let body = json!({ "role": "user", "parts": [{ "type": "text", "text": "later" }] });
    let (_, body) = client.post(&format!("/v1/sessions/{id}/messages"), body).await;
    let turn = body["turn_id"].as_str().unwrap();
    assert_eq!(client.session(&id).await["turns"][0]["status"], "pending");
    let started = client.post(&format!("/v1/sessions/{id}/turns/{turn}/retry"), json!({})).await;
    assert_eq!(started, (200, json!({ "ok": true })));
    assert_eq!(text(&client.until_over(&id).await), "echo: later");
    let again = client.post(&format!("/v1/sessions/{id}/turns/{turn}/retry"), json!({})).await;
    assert_eq!(again.0, 409);
    let unknown = client.post(&format!("/v1/sessions/{id}/turns/turn_x/retry"), json!({})).await;
    assert_eq!(unknown, (404, json!({ "error": "turn not found: turn_x" })));
}

#[tokio::test]
async fn cancelling_an_answer_keeps_its_text() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "half an ans", "hang": true }])).await;
    client.until(&id, |event| event.kind() == "model_output_delta").await;
    let done =
        client.post(&format!("/v1/sessions/{id}/cancel"), json!({ "reason": "enough" })).await;
    assert_eq!(done, (200, json!({ "ok": true })));
    world.model.streaming(0).await;
    let session = client.session(&id).await;
    assert_eq!(
        (&session["status"], &session["turns"][0]["status"]),
        (&json!("canceled"), &json!("canceled"))
    );
    assert_eq!(session["messages"][1]["parts"][0]["text"], "half an ans");
    assert_eq!(session["messages"][1]["interrupted"], true);
    let events = client.until_over(&id).await;
    assert_eq!(events.iter().filter(|event| over(event)).count(), 1);
}

#[tokio::test]
async fn cancelling_a_command_ends_its_processes_first() {
    // In a sandbox the command would not know the outer pid of its process.
    let world =
        World::start("[approval]\nkinds = []\n[verify]\nauto = false\n[sandbox]\nmode = \"off\"\n")
            .await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let script = "sleep 600 & echo $! > pid; trap '' TERM; echo up; wait";
    client.say(&id, json!([{ "tools": [shell(script)] }])).await;
    let follower = client.follow(&id, "0").await;
    follower.until(|event| event.kind() == "tool_call_progress").await;
    let pid = std::fs::read_to_string(world.workspace().join("pid")).unwrap();
    client.post(&format!("/v1/sessions/{id}/cancel"), json!({})).await;
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
    assert_eq!(client.session(&id).await["status"], "canceled");
}

#[tokio::test]
async fn cancelling_an_approval_request_or_nothing_is_no_error() {
    let world = World::start(APPROVE_COMMANDS).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "tools": [shell("touch no")] }])).await;
    let call = pending_approval(&client, &id).await;
    let cancel = format!("/v1/sessions/{id}/cancel");
    for _ in 0..2 {
        assert_eq!(client.post(&cancel, json!({})).await, (200, json!({ "ok": true })));
    }
    let late = client.approve(&id, &call, "approve").await;
    assert_eq!(late, (400, json!({ "error": format!("no approvals pending for session {id}") })));
    assert!(!world.workspace().join("no").exists());
    assert_eq!(client.post("/v1/sessions/sess_none/cancel", json!({})).await.0, 200);
}

#[tokio::test]
async fn a_denial_is_sent_to_the_model_and_the_turn_continues() {
    let world = World::start(APPROVE_COMMANDS).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "tools": [shell("touch no")] }, { "text": "as you wish" }])).await;
    let call = pending_approval(&client, &id).await;
    let wrong = client.approve(&id, "call_other", "approve").await;
    assert_eq!(wrong, (400, json!({ "error": "no approval pending for tool call call_other" })));
    let turn = json!({ "tool_call_id": call, "turn_id": "turn_other" });
    assert_eq!(client.post(&format!("/v1/sessions/{id}/approve"), turn).await.0, 400);
    let body = json!({ "tool_call_id": call, "action": "deny", "reason": "not today" });
    client.post(&format!("/v1/sessions/{id}/approve"), body).await;
    let events = client.until_over(&id).await;
    assert_eq!((text(&events).as_str(), last(&events).kind()), ("as you wish", "turn_completed"));
    let prompt = world.model.calls()[1]["messages"].to_string();
    assert!(prompt.contains("approval denied: not today"), "{prompt}");
    assert!(!world.workspace().join("no").exists());
}

#[tokio::test]
async fn a_denied_call_can_end_the_turn() {
    let world = World::start("[approval]\nkinds = [\"exec\"]\non_deny = \"fail\"\n").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "tools": [shell("true")] }])).await;
    let call = pending_approval(&client, &id).await;
    client.approve(&id, &call, "deny").await;
    let events = client.until(&id, |event| event.kind() == "session_failed").await;
    assert_eq!(last(&events).json["message"], "approval denied");
    assert_eq!(client.session(&id).await["error"], "approval denied");
}

#[tokio::test]
async fn a_failed_turn_is_retried_with_the_same_context() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let turn = client
        .say(&id, json!([{ "status": 400, "message": "no", "fail_times": 1, "text": "yes" }]))
        .await;
    let events = client.until(&id, |event| event.kind() == "session_failed").await;
    assert!(last(&events).json["message"].as_str().unwrap().contains("no"));
    assert_eq!(client.session(&id).await["status"], "failed");
    client.post(&format!("/v1/sessions/{id}/turns/{turn}/retry"), json!({})).await;
    let events = client.until(&id, |event| event.kind() == "turn_completed").await;
    assert_eq!(text(&events), "yes");
    let calls = world.model.calls();
    assert_eq!(calls[0]["messages"], calls[1]["messages"]);
}

#[tokio::test]
async fn retries_of_a_busy_provider_are_shown() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client
        .say(&id, json!([{ "status": 429, "retry_after": 0, "fail_times": 1, "text": "there" }]))
        .await;
    let events = client.until_over(&id).await;
    assert!(kinds(&events).contains(&"model_retrying".into()));
    assert_eq!(text(&events), "there");
}

#[tokio::test]
async fn an_incomplete_answer_fails_the_turn() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "deltas": ["a", "b"], "cut": true }])).await;
    let events = client.until_over(&id).await;
    assert_eq!((text(&events).as_str(), last(&events).kind()), ("ab", "turn_failed"));
    assert_eq!(last(&events).json["data"]["code"], "stream_cut");
}

#[tokio::test]
async fn a_turn_with_a_loop_is_ended() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    std::fs::write(world.workspace().join("a"), "a").unwrap();
    let same = json!({ "tools": [{ "name": "read_file", "args": { "path": "a" } }] });
    client.say(&id, Value::Array(vec![same; 10])).await;
    let events = client.until_over(&id).await;
    assert!(kinds(&events).contains(&"tool_call_skipped".into()));
    assert_eq!(last(&events).json["message"], "duplicate tool call: no new info");
}

#[tokio::test]
async fn a_turn_has_a_step_limit() {
    let world =
        World::start("[approval]\nkinds = []\n[verify]\nauto = false\n[limits]\nsteps = 3\n").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let steps = (0..5).map(|n| json!({ "tools": [shell(&format!("echo {n}"))] })).collect();
    client.say(&id, Value::Array(steps)).await;
    let events = client.until_over(&id).await;
    assert_eq!(last(&events).json["message"], "max turn iterations reached");
    assert_eq!(world.model.calls().len(), 3);
}

#[tokio::test]
async fn a_full_context_is_summarized() {
    let world =
        World::start("context_window = 1000\n[approval]\nkinds = []\n[verify]\nauto = false\n")
            .await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "a long story", "usage": [950, 10] }])).await;
    client.until_over(&id).await;
    let turn = client.say(&id, json!([{ "text": "and then" }])).await;
    let events = client.until(&id, |event| over(event) && event.json["turn_id"] == turn).await;
    assert!(kinds(&events).contains(&"context_compacted".into()));
    let prompt = world.model.calls()[2]["messages"].to_string();
    assert!(
        prompt.contains("Summary of the conversation so far")
            && !prompt.contains("a long story\",\"role"),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_session_can_be_closed_and_reopened() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.post(&format!("/v1/sessions/{id}/complete"), json!({})).await;
    assert_eq!(client.session(&id).await["status"], "completed");
    client.say(&id, json!([{ "text": "one more" }])).await;
    let events = client.until_over(&id).await;
    assert!(kinds(&events).contains(&"session_completed".into()));
    assert_eq!(client.session(&id).await["status"], "active");
}

#[tokio::test]
async fn a_workspace_without_checks_is_not_verified_and_needs_no_approval() {
    let world = World::start("[approval]\ntools = [\"verify\"]\nkinds = []\n").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "tools": [shell("touch a")] }, { "text": "done" }])).await;
    let events = client.until_over(&id).await;
    assert!(!kinds(&events).contains(&"approval_requested".into()));
    // The verification is only assessed, so nothing starts without approval.
    let verify = |event: &&Event| event.json["data"]["tool"] == "verify";
    let told: Vec<&str> = events.iter().filter(verify).map(Event::kind).collect();
    assert_eq!(told, ["tool_call_completed"]);
    assert_eq!(last(&events).json["data"]["verified"], Value::Null);
}

#[tokio::test]
async fn invalid_arguments_are_reported_without_approval() {
    let world = World::start(APPROVE_COMMANDS).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let wrong = json!({ "name": "shell", "args": { "comand": "ls" } });
    client.say(&id, json!([{ "tools": [wrong] }, { "text": "sorry" }])).await;
    let events = client.until_over(&id).await;
    assert!(!kinds(&events).contains(&"approval_requested".into()));
    let done = events.iter().find(|event| event.kind() == "tool_call_completed").unwrap();
    assert_eq!(done.json["data"]["ok"], false);
    assert!(done.json["data"]["error"].as_str().unwrap().contains("command"), "{done:?}");
}
