//! Every message that a client can receive.

use std::collections::BTreeSet;

use quintet_testkit::replay_server::{CannedReply, ReplayServer};
use serde_json::{Value, json};

use crate::computer::{Computer, first, kinds};
use crate::daemon::World;

const FOUND: &str =
    r#"{"query":"q","results":[{"url":"https://tea.example/","title":"Tea","content":"Hot."}]}"#;

/// Every type of message in the protocol's text, and those that its original sends beside.
const ALL: [&str; 30] = [
    "assistant-message-full",
    "audio-chunk",
    "client-tool-manifest",
    "context-compaction-completed",
    "context-compaction-failed",
    "context-compaction-started",
    "error",
    "llm-thought",
    "memory-store",
    "model-history-updated",
    "models-listed",
    "query-accepted",
    "remote-tool-catalog",
    "settings-loaded",
    "settings-updated",
    "stop-query-ack",
    "streaming-complete",
    "streaming-response",
    "system-prompt",
    "token-count",
    "tool-bundle",
    "tool-call",
    "tool-output",
    "tool-schemas",
    "trace-event",
    "user-message-full",
    "wakeword-activated",
    "wakeword-greeting",
    "web-search-progress",
    // Of the other WebSocket; see the tests of what is not available.
    "status",
];

/// What is not sent, and why.
const NOT_SENT: [(&str, &str); 2] = [
    ("audio-chunk", "nothing here speaks yet"),
    ("status", "is for those who speak to the daemon"),
];

/// What was sent of each type, over all that a client can do.
struct Sent(Vec<Value>);

impl Sent {
    async fn until(&mut self, computer: &mut Computer, kind: &str) -> Value {
        self.0.extend(computer.until(kind).await);
        self.0.last().cloned().unwrap()
    }

    async fn ask(&mut self, computer: &mut Computer, (kind, payload): (&str, Value), end: &str) {
        computer.send(kind, payload).await;
        self.until(computer, end).await;
    }
}

fn query(script: &Value) -> Value {
    let text = format!("go {{{{script: {script}}}}}");
    json!({ "text": text, "conversation_ref": "c", "revision_id": "rev_1" })
}

async fn told_more(engine: &ReplayServer) -> World {
    let config = format!(
        "[approval]\nkinds = []\n[verify]\nauto = false\n[search]\napi = \"searxng\"\nbase_url = {:?}\n\
         [windie]\ntrace_events = true\nmemory_events = true\n",
        engine.url()
    );
    World::start(&config).await
}

#[tokio::test]
async fn everything_is_sent_to_a_client_that_does_everything() {
    let engine = ReplayServer::start(CannedReply::json(200, FOUND)).await.unwrap();
    let world = told_more(&engine).await;
    let tools = json!({ "mode": "default_plus_client", "client_manifest": {
        "version": 1, "tools": [],
    }, "enabled_remote_tools": ["web_search"] });
    let hello = json!({
        "type": "handshake", "user_id": "u",
        "agent_definition": { "version": 1, "tools": tools },
    });
    let mut computer = Computer::reach(world.windie(), None, &hello).await;
    let mut sent = Sent(Vec::new());
    sent.until(&mut computer, "remote-tool-catalog").await;
    for (kind, end) in [
        ("load-settings", "settings-loaded"),
        ("list-models", "models-listed"),
        ("wakeword-detected", "wakeword-greeting"),
        ("stop-query", "stop-query-ack"),
    ] {
        sent.ask(&mut computer, (kind, json!({})), end).await;
    }
    let mode = json!({ "interaction_mode": "agent" });
    sent.ask(&mut computer, ("update-settings", mode), "settings-updated").await;
    a_turn(&mut computer, &mut sent).await;
    // One summary comes to something, the next one does not.
    sent.ask(&mut computer, ("compact-history", json!({})), "context-compaction-completed").await;
    let broken = query(&json!([{ "text": "so" }, { "status": 400 }]));
    sent.ask(&mut computer, ("query", broken), "memory-store").await;
    sent.ask(&mut computer, ("compact-history", json!({})), "context-compaction-failed").await;
    sent.ask(&mut computer, ("query", query(&json!([{ "status": 400 }]))), "error").await;
    let seen: BTreeSet<&str> = kinds(&sent.0).into_iter().collect();
    let missing: Vec<&&str> = ALL.iter().filter(|kind| !seen.contains(**kind)).collect();
    let reasons = NOT_SENT.map(|(kind, _)| kind);
    assert!(missing.iter().all(|kind| reasons.contains(kind)), "{missing:?}");
    assert!(seen.iter().all(|kind| ALL.contains(kind)), "{seen:?}");
}

/// A turn with thoughts, a search, calls alone and together, and an answer.
async fn a_turn(computer: &mut Computer, sent: &mut Sent) {
    let wait = |seconds: u64| json!({ "name": "wait", "args": { "seconds": seconds, "explanation": "x" } });
    let search = json!({ "name": "web_search", "args": { "query": "tea" } });
    let script = json!([
        { "tools": [search], "thought": "hm" }, { "tools": [wait(1)] },
        { "tools": [wait(2), wait(3)] },
        { "text": "done" },
    ]);
    computer.send("query", query(&script)).await;
    loop {
        let call = sent.until(computer, "tool-call").await;
        if call["payload"]["tool_name"] == "wait" {
            let request = &call["payload"]["request_id"];
            let result = json!({
                "request_id": request, "success": true, "data": { "output": "ok" },
            });
            computer.send("tool-result", result).await;
            break;
        }
    }
    let bundle = sent.until(computer, "tool-bundle").await;
    let payload = json!({
        "bundle_id": bundle["payload"]["bundle_id"], "status": "success",
        "step_results": [{ "tool": "wait", "status": "ok" }, { "tool": "wait", "status": "ok" }],
    });
    computer.send("tool-bundle-result", payload).await;
    sent.until(computer, "memory-store").await;
}

#[tokio::test]
async fn spans_tell_what_took_how_long_and_nothing_that_was_said() {
    let engine = ReplayServer::start(CannedReply::json(200, FOUND)).await.unwrap();
    let world = told_more(&engine).await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    computer.send("update-settings", json!({ "speech_mode_enabled": true })).await;
    let updated = computer.until("settings-updated").await.pop().unwrap();
    let why = &updated["payload"]["unavailable"]["speech_mode_enabled"];
    assert_eq!(why, "Speech service not available");
    let told = computer.turn("c", json!([{ "text": "a secret answer" }])).await;
    let spans: Vec<&Value> = told.iter().filter(|frame| frame["type"] == "trace-event").collect();
    let stands: Vec<String> = spans
        .iter()
        .map(|span| {
            let word = |name: &str| span["payload"][name].as_str().unwrap_or_default();
            format!("{} {} {}", word("path"), word("stage"), word("status"))
        })
        .collect();
    assert_eq!(
        stands,
        [
            "backend.stream stream started",
            "tts.playback session skipped",
            "backend.prompt build succeeded",
            "tool.schema.policy project succeeded",
            "provider.call request started",
            "provider.call request succeeded",
            "backend.stream stream succeeded",
        ]
    );
    assert!(spans.iter().all(|span| span["payload"]["schemaVersion"] == 1));
    assert!(spans.iter().all(|span| !span.to_string().contains("secret answer")));
    let memory = computer.until("memory-store").await.pop().unwrap();
    let payload = &memory["payload"];
    assert_eq!(payload["assistant_response"], "a secret answer");
    assert!(payload["user_query"].as_str().unwrap().starts_with("go "));
    assert_eq!((&payload["memory_type"], &payload["user_id"]), (&json!("episodic"), &json!("u")));
    assert_eq!(payload["session_id"], "c");
    assert!(memory.get("sequence").is_none() && memory.get("event_id").is_none());
    assert_eq!(first(&told, "streaming-complete")["payload"]["final_response"], "a secret answer");
}
