//! Tests of minimal transcripts of each agent.

use std::fs;

use rusqlite::Connection;
use serde_json::json;

use super::*;

/// Checks how a file is parsed: the agent, the id and the messages.
#[track_caller]
fn check(name: &str, text: &str, expected: &str) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(name);
    fs::write(&file, text).unwrap();
    let read = source::read(None, &file).unwrap();
    assert_eq!(shown(&read[0]), expected);
    let folder = source::read(Some(read[0].source), dir.path()).unwrap();
    assert_eq!(shown(&folder[0]), expected);
}

fn shown(transcript: &Transcript) -> String {
    let cwd = transcript.cwd.as_deref().unwrap_or(Path::new("-")).display().to_string();
    let mut lines = vec![format!("{} {} {cwd}", transcript.source.name(), transcript.id)];
    for message in &transcript.messages {
        let part = |part: &Value| match part["type"].as_str() {
            Some("call") => format!("{}({}) {}", part["tool"], part["id"], part["input"]),
            Some(kind) => format!("{kind}:{}", part["text"].as_str().unwrap_or_default()),
            None => "?".to_owned(),
        };
        let parts: Vec<_> = message["parts"].as_array().unwrap().iter().map(part).collect();
        let of = message["call"].as_str().map(|call| format!(" {call}")).unwrap_or_default();
        lines.push(format!("{}{of}: {}", message["role"].as_str().unwrap(), parts.join(", ")));
    }
    lines.join("\n")
}

#[test]
fn a_log_of_codex() {
    check(
        "rollout-x.jsonl",
        r#"{"timestamp":"t","type":"session_meta","payload":{"id":"u-1","cwd":"/w"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}
{"type":"event_msg","payload":{"type":"user_message","message":"list"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"list"}]}}
{"type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"{\"output\":\"a b\",\"metadata\":{}}"}}
not json
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two"}]}}"#,
        "codex u-1 /w\nuser: text:list\nassistant: thought:hm, \"shell\"(\"call_1\") {\"command\":[\"ls\"]}\ntool call_1: text:a b\nassistant: text:two",
    );
}

#[test]
fn a_log_of_claude_code() {
    check(
        "0b.jsonl",
        r#"{"type":"summary","summary":"x"}
{"type":"user","sessionId":"0b","cwd":"/w","message":{"role":"user","content":"list"}}
{"type":"user","isMeta":true,"message":{"role":"user","content":"hidden"}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"a b"}]}]}}
{"type":"assistant","isSidechain":true,"message":{"role":"assistant","content":[{"type":"text","text":"aside"}]}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"two"}]}}"#,
        "claude 0b /w\nuser: text:list\nassistant: thought:hm, \"Bash\"(\"toolu_1\") {\"command\":\"ls\"}\ntool toolu_1: text:a b\nassistant: text:two",
    );
}

const GOOSE: &str = r#"[{"type":"toolRequest","id":"c.1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls"}}}}]"#;

#[test]
fn a_log_of_goose() {
    check(
        "20250101.jsonl",
        &format!(
            r#"{{"working_dir":"/w","description":"x","message_count":3}}
{{"role":"user","created":1,"content":[{{"type":"text","text":"list"}}]}}
{{"role":"assistant","created":1,"content":{GOOSE}}}
{{"role":"user","created":1,"content":[{{"type":"toolResponse","id":"c.1","toolResult":{{"status":"success","value":[{{"type":"text","text":"a b"}}]}}}}]}}"#
        ),
        "goose 20250101 /w\nuser: text:list\nassistant: \"developer__shell\"(\"c_1\") {\"command\":\"ls\"}\ntool c_1: text:a b",
    );
}

#[test]
fn an_export_of_opencode() {
    let tool = json!({ "type": "tool", "callID": "c1", "tool": "bash", "state": { "input": { "command": "ls" }, "output": "a b" } });
    let export = json!({
        "info": { "id": "ses_1", "directory": "/w" },
        "messages": [
            { "info": { "role": "user" }, "parts": [{ "type": "text", "text": "list" }, { "type": "text", "text": "x", "synthetic": true }] },
            { "info": { "role": "assistant" }, "parts": [{ "type": "step-start" }, tool, { "type": "text", "text": "two" }] },
        ],
    });
    check(
        "export.json",
        &export.to_string(),
        "opencode ses_1 /w\nuser: text:list\nassistant: \"bash\"(\"c1\") {\"command\":\"ls\"}\ntool c1: text:a b\nassistant: text:two",
    );
}

#[test]
fn databases_and_folders() {
    let dir = tempfile::tempdir().unwrap();
    let opencode = Connection::open(dir.path().join("opencode.db")).unwrap();
    opencode
        .execute_batch(
            "CREATE TABLE session (id TEXT, directory TEXT); CREATE TABLE message (id TEXT, session_id TEXT, data TEXT);
             CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);
             INSERT INTO session VALUES ('ses_1', '/w'); INSERT INTO message VALUES ('m1', 'ses_1', '{\"role\":\"user\"}');
             INSERT INTO part VALUES ('p1', 'm1', '{\"type\":\"text\",\"text\":\"hi\"}');",
        )
        .unwrap();
    let goose = Connection::open(dir.path().join("sessions.db")).unwrap();
    goose
        .execute_batch(
            "CREATE TABLE sessions (id TEXT, working_dir TEXT); CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT, content_json TEXT);
             INSERT INTO sessions VALUES ('g1', '/w'); INSERT INTO messages VALUES (1, 'g1', 'user', '[{\"type\":\"text\",\"text\":\"ho\"}]');",
        )
        .unwrap();
    let storage = dir.path().join("storage");
    for (path, value) in [
        ("session/global/ses_2.json", json!({ "id": "ses_2", "directory": "/w" })),
        ("message/ses_2/m1.json", json!({ "id": "m1", "role": "user" })),
        ("part/m1/p1.json", json!({ "type": "text", "text": "ha" })),
    ] {
        let file = storage.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, value.to_string()).unwrap();
    }
    fs::write(dir.path().join("other.json"), "{}").unwrap();
    let read = source::read(None, dir.path()).unwrap();
    let read: Vec<_> = read.iter().map(shown).collect();
    let expected = [
        "opencode ses_1 /w\nuser: text:hi",
        "goose g1 /w\nuser: text:ho",
        "opencode ses_2 /w\nuser: text:ha",
    ];
    assert_eq!(read, expected);
    assert!(source::read(None, &dir.path().join("other.json")).is_err());
}
