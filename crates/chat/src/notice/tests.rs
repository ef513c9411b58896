//! Tests of decoding messages of servers.

use serde_json::json;

use super::*;

fn read(method: &str, params: Value) -> Option<Notice> {
    Notice::read(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

#[test]
fn tokens_are_decoded_in_both_formats() {
    let plain = |text: &str, end| Token { text: text.into(), fenced: false, end };
    let one = read("stream.token", json!({ "query_id": "q", "content": "hi" }));
    assert_eq!(one, Some(Notice::Tokens { query: "q".into(), tokens: vec![plain("hi", None)] }));
    let tokens = json!([
        { "token": "a", "content": "a", "metadata": { "type": "text", "offset": 4 } },
        { "token": "b", "content": "", "metadata": { "type": "code", "offset": 5 } },
    ]);
    let many = read("stream.tokens", json!({ "query_id": "q", "tokens": tokens }));
    let code = Token { text: "b".into(), fenced: true, end: Some(6) };
    let tokens = vec![plain("a", Some(5)), code];
    assert_eq!(many, Some(Notice::Tokens { query: "q".into(), tokens }));
}

#[test]
fn the_specified_formats_are_decoded() {
    let block = json!({
        "query_id": "q-123abc", "block_id": "block-789",
        "block": {
            "type": "code", "language": "rust", "content": "fn a() {}",
            "metadata": { "file": "src/main.rs", "lines": "10-15" },
        },
    });
    let Some(Notice::Block { block, .. }) = read("stream.block", block) else { panic!() };
    assert_eq!((block.kind, block.place.as_str()), (Kind::Code, "src/main.rs:10-15"));

    let done = json!({
        "execution_id": "exec-456def", "status": "success",
        "result": { "output": "written", "files_modified": ["src/main.rs"], "duration_ms": 125 },
    });
    let Some(Notice::CallEnded(done)) = read("tool.complete", done) else { panic!() };
    assert_eq!((done.files.as_slice(), done.millis), (&["src/main.rs".to_owned()][..], 125));

    let flat = json!({
        "execution_id": "e", "tool_name": "shell", "description": "ls", "risk_level": "high",
        "preview": "$ ls",
    });
    let Some(Notice::Approval(asked)) = read("tool.request_approval", flat) else { panic!() };
    assert_eq!(
        (asked.tool.as_str(), asked.risk.as_str(), asked.preview.as_str()),
        ("shell", "high", "$ ls")
    );
}

#[test]
fn invalid_messages_are_ignored() {
    for message in [
        json!(null),
        json!([]),
        json!({ "method": 7, "params": {} }),
        json!({ "method": "stream.tokens", "params": { "tokens": "x" } }),
        json!({ "method": "suggestion.inline", "params": {} }),
        json!({ "method": "stream.token" }),
    ] {
        assert_eq!(Notice::read(&message), None, "{message}");
    }
    for method in
        ["stream.token", "stream.block", "stream.complete", "tool.progress", "tool.complete"]
    {
        assert!(read(method, json!({ "query_id": 7, "metadata": [], "block": "x" })).is_some());
    }
}
