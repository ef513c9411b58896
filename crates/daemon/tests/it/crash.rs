//! Tests of `kill -9` at random points, many times.
//!
//! Every acknowledged message is stored; every event and every byte of text that a client received
//! is stored; each turn ends exactly once; no tool runs twice; the database is intact.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Client, Event, ends_turn};
use crate::daemon::World;

/// Together 32 kills, of new daemons and of ones that were killed before.
const WORLDS: u64 = 4;
const KILLS: u64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_a_kill() {
    for world in 0..WORLDS {
        survive(0x5eed + world).await;
    }
}

/// What a client knows about one session.
#[derive(Default)]
struct Known {
    messages: Vec<String>,
    events: Vec<Event>,
}

async fn survive(seed: u64) {
    let mut chance = Random(seed);
    let mut world =
        World::start("[approval]\nkinds = []\ntools = [\"read_file\"]\n[verify]\nauto = false\n")
            .await;
    std::fs::write(world.workspace().join("note"), "a note").unwrap();
    let mut known: HashMap<String, Known> = HashMap::new();
    for kill in 0..KILLS {
        let client = world.client();
        let mut clients = JoinSet::new();
        for kind in 0..3 {
            let name = format!("{kill}-{kind}");
            clients.spawn(use_session(
                client.clone(),
                world.workspace().to_owned(),
                name,
                kind,
                chance.next(),
            ));
        }
        tokio::time::sleep(Duration::from_millis(20 + chance.next() % 500)).await;
        world.kill();
        for (session, learnt) in clients.join_all().await.into_iter().flatten() {
            known.insert(session, learnt);
        }
        assert_eq!(world.integrity(), "ok", "seed {seed}, kill {kill}");
        world.restart();
        let client = world.client();
        for (session, known) in &known {
            check_known(&client, session, known).await;
        }
    }
    let client = world.client();
    for session in known.keys() {
        finish(&client, session).await;
        ends_once(&client, session).await;
    }
    ran_once(&client, known.keys(), world.workspace()).await;
}

/// A client with one session; returns what it received before the daemon died.
async fn use_session(
    client: Client,
    workspace: std::path::PathBuf,
    name: String,
    kind: u64,
    chance: u64,
) -> Option<(String, Known)> {
    let created = client.request(reqwest::Method::POST, "/v1/sessions");
    let body = json!({ "workspace_path": workspace });
    let created = created.body(body.to_string()).send().await.ok()?.text().await.ok()?;
    let session = serde_json::from_str::<Value>(&created).ok()?["session_id"].as_str()?.to_owned();
    let mut known = Known::default();
    let message =
        client.request(reqwest::Method::POST, &format!("/v1/sessions/{session}/messages"));
    let text = format!("go {{{{script: {}}}}}", script(&name, kind, chance));
    let part = json!({ "type": "text", "text": text });
    let body = json!({ "role": "user", "parts": [part], "auto_run": true });
    if let Ok(answer) = message.body(body.to_string()).send().await
        && let Ok(answer) = answer.text().await
    {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        known.messages.push(answer["message_id"].as_str().unwrap().into());
        follow(&client, &session, &mut known).await;
    }
    Some((session, known))
}

/// A long answer; commands with effects; an approval request that is answered at once.
fn script(name: &str, kind: u64, chance: u64) -> Value {
    let words = |n: u64| (0..n).map(|n| format!("w{n} ")).collect::<Vec<_>>();
    let effect = |n: u64| json!({ "name": "shell", "args": { "command": format!("mktemp -d ran-{name}-{n}.XXXXXX; sleep 0.0{}", chance % 10) } });
    match kind {
        0 => json!([{ "thought": "hm ", "deltas": words(60), "gap_ms": chance % 12 }]),
        1 => {
            json!([{ "deltas": words(3), "tools": [effect(0), effect(1)] }, { "tools": [effect(2)] }, { "text": "done" }])
        }
        _ => {
            json!([{ "text": "may I? ", "tools": [{ "name": "read_file", "args": { "path": "note" } }] }, { "deltas": words(20), "gap_ms": 3 }])
        }
    }
}

async fn follow(client: &Client, session: &str, known: &mut Known) {
    let url = client.request(reqwest::Method::GET, &format!("/v1/sessions/{session}/events"));
    let Ok(response) = url.send().await else { return };
    let mut events = crate::client::Events::of(response);
    while let Some(event) = events.next().await {
        let asked = (event.kind() == "approval_requested")
            .then(|| event.json["data"]["tool_call_id"].clone());
        known.events.push(event);
        if let Some(call) = asked {
            let body = json!({ "tool_call_id": call });
            let answer =
                client.request(reqwest::Method::POST, &format!("/v1/sessions/{session}/approve"));
            let _ = answer.body(body.to_string()).send().await;
        }
    }
}

async fn check_known(client: &Client, session: &str, known: &Known) {
    let shown = client.session(session).await;
    let messages = shown["messages"].as_array().unwrap();
    for id in &known.messages {
        assert!(messages.iter().any(|message| message["id"] == *id), "{session} lost message {id}");
    }
    let history = client.history(session).await;
    let durable = |event: &&Event| {
        !matches!(event.kind(), "model_output_delta" | "model_thought_delta" | "tool_call_progress")
    };
    for event in known.events.iter().filter(durable) {
        assert!(history.contains(&event.json), "{session} lost {event:?}");
    }
    // The event that starts a step separates its text from that of others.
    let (received, kept) =
        (texts(known.events.iter().map(|event| &event.json)), texts(history.iter()));
    for (step, text) in received {
        let kept = kept.get(&step).map_or("", String::as_str);
        assert!(
            kept.starts_with(&text),
            "{session} lost text: {text:?} was received, {kept:?} is kept"
        );
    }
}

/// The output of each step.
fn texts<'a>(events: impl Iterator<Item = &'a Value>) -> HashMap<String, String> {
    let mut texts = HashMap::new();
    let mut step = String::new();
    for event in events {
        match event["type"].as_str().unwrap() {
            "model_resolved" => step = event["data"]["step_id"].as_str().unwrap().into(),
            "model_output_delta" | "model_thought_delta" => {
                let text: &mut String = texts.entry(step.clone()).or_default();
                text.push_str(event["data"]["delta"].as_str().unwrap());
            }
            _ => {}
        }
    }
    texts
}

/// Answers approval requests until the turn ends.
async fn finish(client: &Client, session: &str) {
    let mut events = client.follow(session, "0").await;
    if client.session(session).await["turns"].as_array().unwrap().is_empty() {
        return;
    }
    while let Some(event) = events.next().await {
        if event.kind() == "approval_requested" {
            client
                .approve(session, event.json["data"]["tool_call_id"].as_str().unwrap(), "approve")
                .await;
        }
        if ends_turn(event.kind()) {
            return;
        }
    }
    panic!("{session} did not end");
}

async fn ends_once(client: &Client, session: &str) {
    let mut ends: HashMap<String, usize> = HashMap::new();
    for event in client.history(session).await {
        if ends_turn(event["type"].as_str().unwrap()) {
            *ends.entry(event["turn_id"].as_str().unwrap().into()).or_default() += 1;
        }
    }
    for turn in client.session(session).await["turns"].as_array().unwrap() {
        let id = turn["id"].as_str().unwrap();
        assert_eq!(ends.get(id), Some(&1), "{session}: turn {id} is {}", turn["status"]);
    }
}

/// Every run of a command creates its own folder, completely or not at all: there is at most one
/// per command, and exactly one for a command that is reported as run.
async fn ran_once(client: &Client, sessions: impl Iterator<Item = &String>, workspace: &Path) {
    let mut runs: HashMap<String, Vec<String>> = HashMap::new();
    for folder in workspace.read_dir().unwrap() {
        let folder = folder.unwrap().file_name().into_string().unwrap();
        if let Some((command, _)) = folder.split_once('.').filter(|_| folder.starts_with("ran-")) {
            runs.entry(command.to_owned()).or_default().push(folder);
        }
    }
    assert!(runs.values().all(|folders| folders.len() == 1), "{runs:?}");
    for session in sessions {
        for event in client.history(session).await {
            let data = &event["data"];
            if event["type"] == "tool_call_completed"
                && data["tool"] == "shell"
                && data["ok"] == true
            {
                let report: Value = serde_json::from_str(data["output"].as_str().unwrap()).unwrap();
                let folder = report["stdout"].as_str().unwrap().trim();
                let command = folder.split_once('.').unwrap().0;
                assert_eq!(runs[command], [folder], "{report}");
            }
        }
    }
}

/// Deterministic pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
}
