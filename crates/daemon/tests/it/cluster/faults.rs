//! Tests of random faults with a seed: `kill -9`, pauses, restarts of the database, closed
//! connections.
//!
//! Nothing acknowledged is lost, each turn ends once, no tool runs twice, and events are numbered
//! without gaps. `CLUSTER_FAULTS` sets the number of faults, `CLUSTER_SEED` the seed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use super::world::{Node, Site};
use crate::client::{Client, ends_turn};

/// Number of faults in a test run; `make soak` uses more.
const FAULTS: u64 = 100;
const CLIENTS: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_lose_and_duplicate_nothing() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (faults, seed) = (number("CLUSTER_FAULTS", FAULTS), number("CLUSTER_SEED", 0x5eed));
    let site =
        Site::new("[approval]\nkinds = []\ntools = [\"read_file\"]\n[verify]\nauto = false\n")
            .await;
    std::fs::write(site.workspace().join("note"), "a note").unwrap();
    let mut nodes: Vec<Node> = ["a", "b", "c"].map(|name| Node::start(&site, name)).into();
    let entries = Arc::new(Entries::default());
    entries.publish(&nodes).await;
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (entries, workspace) = (Arc::clone(&entries), site.workspace().to_owned());
        clients.spawn(async move {
            let chance = Random(seed ^ (number << 32) ^ 0xc11e);
            TestClient { number, chance, entries, workspace, known: HashMap::new() }.work().await
        });
    }
    let (mut chance, began) = (Random(seed), std::time::Instant::now());
    for _ in 0..faults {
        tokio::time::sleep(Duration::from_millis(chance.next() % 250)).await;
        inject(&site, &mut nodes, &entries, &mut chance).await;
    }
    let took = began.elapsed();
    for node in nodes.iter_mut().filter(|node| !node.is_running()) {
        node.restart();
    }
    entries.publish(&nodes).await;
    entries.over.store(true, Ordering::SeqCst);
    let known: HashMap<String, Vec<String>> =
        clients.join_all().await.into_iter().flatten().collect();
    assert!(known.len() as u64 >= faults / 10, "enough sessions were used: {}", known.len());
    let client = nodes[0].client();
    for (session, messages) in &known {
        finish(&client, session).await;
        check(&client, session, messages).await;
    }
    ran_once(site.workspace());
    assert_eq!(site.gaps(), 0, "seed {seed}");
    println!("{faults} faults in {took:?}, {} sessions, seed {seed}", known.len());
}

async fn inject(site: &Site, nodes: &mut [Node], entries: &Entries, chance: &mut Random) {
    let victim = chance.next() as usize % nodes.len();
    match chance.next() % 10 {
        0..4 => {
            nodes[victim].kill();
            entries.publish(nodes).await;
            tokio::time::sleep(Duration::from_millis(chance.next() % 300)).await;
            nodes[victim].restart();
            entries.publish(nodes).await;
        }
        4..7 => {
            nodes[victim].signal(Signal::STOP);
            // Shorter and longer than a lease.
            let pause = if chance.next().is_multiple_of(4) { 3000 } else { 300 };
            tokio::time::sleep(Duration::from_millis(chance.next() % pause)).await;
            nodes[victim].signal(Signal::CONT);
        }
        7..9 => site.postgres.cut_connections(),
        _ => site.postgres.crash(),
    }
}

/// The nodes that clients may use at the moment.
#[derive(Default)]
struct Entries {
    clients: RwLock<Vec<Client>>,
    over: AtomicBool,
}

impl Entries {
    async fn publish(&self, nodes: &[Node]) {
        let running = nodes.iter().filter(|node| node.is_running());
        *self.clients.write().await = running.map(Node::client).collect();
    }

    async fn one(&self, chance: &mut Random) -> Client {
        loop {
            let clients = self.clients.read().await;
            if !clients.is_empty() {
                return clients[chance.next() as usize % clients.len()].clone();
            }
            drop(clients);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A client that uses one session after the other, at any node.
struct TestClient {
    number: u64,
    chance: Random,
    entries: Arc<Entries>,
    workspace: std::path::PathBuf,
    /// Sessions with their acknowledged messages.
    known: HashMap<String, Vec<String>>,
}

impl TestClient {
    async fn work(mut self) -> HashMap<String, Vec<String>> {
        let mut round = 0;
        while !self.entries.over.load(Ordering::SeqCst) {
            round += 1;
            let name = format!("{}-{round}", self.number);
            if self.converse(&name).await.is_none() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        self.known
    }

    /// One session with up to three messages, each at another node.
    async fn converse(&mut self, name: &str) -> Option<()> {
        let client = self.entries.one(&mut self.chance).await;
        let body = json!({ "workspace_path": self.workspace });
        let created = post(&client, "/v1/sessions", body).await?;
        let session = created["session_id"].as_str()?.to_owned();
        self.known.insert(session.clone(), Vec::new());
        for message in 0..3 {
            let client = self.entries.one(&mut self.chance).await;
            let script = script(&format!("{name}-{message}"), self.chance.next());
            let text = format!("go {{{{script: {script}}}}}");
            let body = json!({
                "role": "user", "parts": [{ "type": "text", "text": text }], "auto_run": true,
            });
            let path = format!("/v1/sessions/{session}/messages");
            let answer = post(&client, &path, body).await?;
            let id = answer["message_id"].as_str()?.to_owned();
            self.known.get_mut(&session)?.push(id);
            self.follow(&session).await?;
        }
        Some(())
    }

    /// Follows at any node and answers approval requests; stops when something fails.
    async fn follow(&mut self, session: &str) -> Option<()> {
        let client = self.entries.one(&mut self.chance).await;
        let path = format!("/v1/sessions/{session}/events");
        let response = client.unhurried(Method::GET, &path).send().await.ok()?;
        let mut events = crate::client::Events::of(response);
        let mut open = 0;
        loop {
            let next = tokio::time::timeout(Duration::from_secs(8), events.read()).await;
            let event = next.ok()??;
            match event.kind() {
                "turn_started" => open += 1,
                "approval_requested" => {
                    let client = self.entries.one(&mut self.chance).await;
                    let body = json!({ "tool_call_id": event.json["data"]["tool_call_id"] });
                    post(&client, &format!("/v1/sessions/{session}/approve"), body).await?;
                }
                kind if ends_turn(kind) => {
                    open -= 1;
                    let asked = self.known[session].len();
                    if open <= 0 && asked > 0 {
                        return Some(());
                    }
                }
                _ => {}
            }
        }
    }
}

async fn post(client: &Client, path: &str, body: Value) -> Option<Value> {
    let request = client.request(Method::POST, path).body(body.to_string());
    let response = request.send().await.ok()?;
    if response.status() != 200 {
        return None;
    }
    serde_json::from_str(&response.text().await.ok()?).ok()
}

/// Text, commands with effects, and an approval request.
fn script(name: &str, chance: u64) -> Value {
    let words = |n: u64| (0..n).map(|n| format!("w{n} ")).collect::<Vec<_>>();
    let effect = |n: u64| json!({ "name": "shell", "args": { "command": format!("mktemp -d ran-{name}-{n}.XXXXXX; sleep 0.0{}", chance % 10) } });
    match chance % 3 {
        0 => json!([{ "deltas": words(30), "gap_ms": chance % 20 }]),
        1 => {
            json!([{ "tools": [effect(0), effect(1)] }, { "tools": [effect(2)] }, { "text": "done" }])
        }
        _ => json!([
            { "tools": [{ "name": "read_file", "args": { "path": "note" } }] },
            { "deltas": words(10), "gap_ms": 3 },
        ]),
    }
}

/// Answers approval requests until the session is idle.
async fn finish(client: &Client, session: &str) {
    let rests = async {
        loop {
            let (status, shown) = client.get(&format!("/v1/sessions/{session}")).await;
            if status == 200 {
                let turns = shown["turns"].as_array().unwrap();
                let is_over = |turn: &Value| {
                    matches!(turn["status"].as_str(), Some("succeeded" | "failed" | "canceled"))
                };
                if turns.iter().all(is_over) {
                    return;
                }
                let history = client.history(session).await;
                let mut asked =
                    history.iter().filter(|event| event["type"] == "approval_requested");
                if let Some(call) =
                    asked.next_back().and_then(|it| it["data"]["tool_call_id"].as_str())
                {
                    client.approve(session, call, "approve").await;
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let rested = tokio::time::timeout(Duration::from_secs(60), rests).await;
    assert!(rested.is_ok(), "{session} does not end");
}

async fn check(client: &Client, session: &str, messages: &[String]) {
    let shown = client.session(session).await;
    let there = shown["messages"].as_array().unwrap();
    for id in messages {
        assert!(there.iter().any(|message| message["id"] == **id), "{session} lost message {id}");
    }
    let mut ends: HashMap<String, usize> = HashMap::new();
    for event in client.history(session).await {
        if ends_turn(event["type"].as_str().unwrap()) {
            *ends.entry(event["turn_id"].as_str().unwrap().into()).or_default() += 1;
        }
    }
    for turn in shown["turns"].as_array().unwrap() {
        let id = turn["id"].as_str().unwrap();
        assert_eq!(ends.get(id), Some(&1), "{session}: turn {id} is {}", turn["status"]);
    }
}

/// Each run of a command creates its own folder: there is at most one per command.
fn ran_once(workspace: &Path) {
    let mut runs: HashMap<String, usize> = HashMap::new();
    for folder in workspace.read_dir().unwrap() {
        let folder = folder.unwrap().file_name().into_string().unwrap();
        if let Some((command, _)) = folder.split_once('.').filter(|_| folder.starts_with("ran-")) {
            *runs.entry(command.to_owned()).or_default() += 1;
        }
    }
    assert!(runs.values().all(|times| *times == 1), "{runs:?}");
}

/// Deterministic pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
}
