//! Tests of one request, with a scripted daemon.

use serde_json::json;

use super::*;
use crate::scripted::{Server, Step, accept, complete, load, request_write_approval, token};

struct Printed {
    ended: Result<Ending, Error>,
    answer: String,
    messages: String,
}

async fn run(settings: &Settings, format: OutputFormat, approvals: Approvals) -> Printed {
    let (mut answer, mut messages) = (Vec::new(), Vec::new());
    let request = PrintRequest { text: "say it".into(), format, approvals };
    let output = Output { answer: &mut answer, messages: &mut messages };
    let ended = print(settings, &request, output).await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Printed { ended, answer: text(answer), messages: text(messages) }
}

#[tokio::test]
async fn the_answer_is_printed_while_it_streams() {
    let block =
        json!({ "query_id": "q-1", "block": { "type": "text", "content": "Hello, world" } });
    let server = Server::play(vec![vec![
        accept(),
        Step::Notify("agent.thinking", json!({ "query_id": "q-1", "phase": "analyzing" })),
        Step::SendRaw("{not json"),
        token("Hello, ", 0),
        token("world", 7),
        Step::Notify("stream.block", block),
        complete("success"),
    ]]);
    let printed = run(&server.settings, OutputFormat::Text, Approvals::Refuse).await;
    assert_eq!(printed.ended.unwrap(), Ending::Answered);
    assert_eq!((printed.answer.as_str(), printed.messages.as_str()), ("Hello, world\n", ""));

    let received = server.received().await;
    assert_eq!(received[0]["params"]["terminal_size"], json!({ "cols": 80, "rows": 24 }));
    assert_eq!(received[0]["params"]["protocol_version"], "1.0.0");
    let query = &received[1]["params"];
    assert_eq!(query["message"], "say it");
    assert_eq!(query["context"], json!({ "cwd": "/some/place", "shell": "/bin/sh" }));
}

#[tokio::test]
async fn blocks_without_tokens_are_printed_too() {
    let block = |kind: &str, content: &str| {
        let block = json!({ "type": kind, "language": "rust", "content": content });
        Step::Notify("stream.block", json!({ "query_id": "q-1", "block": block }))
    };
    let server = Server::play(vec![vec![
        accept(),
        block("text", "Look:"),
        block("code", "fn main() {}"),
        block("tool_output", "noise"),
        complete("success"),
    ]]);
    let printed = run(&server.settings, OutputFormat::Text, Approvals::Refuse).await;
    assert_eq!(printed.answer, "Look:\nfn main() {}\n");
}

#[tokio::test]
async fn approvals_are_refused_by_default() {
    for (approvals, approved, said) in
        [(Approvals::Refuse, false, "--yes"), (Approvals::Approve, true, "approved")]
    {
        let server = Server::play(vec![vec![
            accept(),
            token("First.", 0),
            request_write_approval(),
            Step::Answer("tool.approve", json!({ "status": "ok" })),
            token("Then.", 6),
            complete("success"),
        ]]);
        let printed = run(&server.settings, OutputFormat::Text, approvals).await;
        assert_eq!(printed.answer, "First.\nThen.\n");
        assert!(printed.messages.contains("write_file src/main.rs"), "{}", printed.messages);
        assert!(printed.messages.contains(said), "{}", printed.messages);
        let received = server.received().await;
        assert_eq!(received[2]["params"]["approved"], approved);
        assert_eq!(received[2]["params"]["execution_id"], "exec-1");
    }
}

#[tokio::test]
async fn the_json_format_prints_every_event_as_a_line() {
    let other = json!({ "query_id": "q-9", "token": "not mine" });
    let server = Server::play(vec![vec![
        accept(),
        Step::Notify("stream.token", other),
        token("Hi", 0),
        complete("success"),
    ]]);
    let printed = run(&server.settings, OutputFormat::Json, Approvals::Refuse).await;
    let lines: Vec<Value> =
        printed.answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["method"], &lines[0]["params"]["token"]),
        (&json!("stream.token"), &json!("Hi"))
    );
    assert_eq!(lines[1]["params"]["status"], "success");
}

#[tokio::test]
async fn errors_are_printed_and_set_the_result() {
    for (status, ending) in [("error", Ending::Failed), ("cancelled", Ending::Cancelled)] {
        let error = json!({ "code": -32001, "message": "LLM inference failed", "details": "no \u{1b}[31mkey" });
        let server = Server::play(vec![vec![
            accept(),
            Step::Notify("stream.error", json!({ "query_id": "q-1", "error": error })),
            complete(status),
        ]]);
        let printed = run(&server.settings, OutputFormat::Text, Approvals::Refuse).await;
        assert_eq!(printed.ended.unwrap(), ending);
        assert_eq!(printed.messages, "quintet: LLM inference failed: no [31mkey\n");
    }
    let server = Server::play(vec![vec![Step::Refuse("agent.query", "unknown model x/y")]]);
    let printed = run(&server.settings, OutputFormat::Text, Approvals::Refuse).await;
    assert_eq!(printed.ended.unwrap_err().to_string(), "unknown model x/y");
}

#[tokio::test]
async fn an_answer_continues_after_a_reconnect() {
    let server = Server::play(vec![
        vec![accept(), token("Hello, ", 0)],
        vec![load(true), token("world", 7), complete("success")],
    ]);
    let printed = run(&server.settings, OutputFormat::Text, Approvals::Refuse).await;
    assert_eq!(printed.ended.unwrap(), Ending::Answered);
    assert_eq!(printed.answer, "Hello, world\n");
    let received = server.received().await;
    assert_eq!(received[3]["params"], json!({ "session_id": "session-1", "offset": 7 }));
}

#[tokio::test]
async fn a_session_is_continued() {
    let server =
        Server::play(vec![vec![load(false), accept(), token("More", 0), complete("success")]]);
    let settings = Settings { session: Some("session-1".into()), ..server.settings.clone() };
    let printed = run(&settings, OutputFormat::Plain, Approvals::Refuse).await;
    assert_eq!(printed.answer, "More\n");
}

#[tokio::test]
async fn control_sequences_are_removed_for_a_terminal() {
    let server = Server::play(vec![vec![
        accept(),
        token("a\u{1b}]0;title\u{7}b\tc\n", 0),
        complete("success"),
    ]]);
    let printed = run(&server.settings, OutputFormat::Plain, Approvals::Refuse).await;
    assert_eq!(printed.answer, "a]0;titleb\tc\n");
}
