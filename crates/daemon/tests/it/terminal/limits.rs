//! Refused requests, and slow, many and impolite clients.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::client::{Terminal, of, text};
use crate::daemon::World;

#[tokio::test]
async fn bad_input_is_refused_with_the_codes_of_the_specification() {
    let world = World::start("").await;
    let mut terminal = Terminal::connect(&world.terminal()).await;
    let early = terminal.request("session.list", json!({})).await.unwrap_err();
    assert_eq!(early["code"], -32600);
    let other = json!({ "protocol_version": "2.0.0" });
    let other = terminal.request("initialize", other).await.unwrap_err();
    assert_eq!((&other["code"], &other["data"]["supported"]), (&json!(-32602), &json!(["1.0.0"])));
    terminal.initialize(json!([])).await;
    for (line, code, id) in [
        ("{", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"{"jsonrpc":"1.0","id":"x","method":"session.list"}"#, -32600, json!("x")),
        (r#"{"jsonrpc":"2.0","id":9,"method":"no.such"}"#, -32601, json!(9)),
        (r#"{"jsonrpc":"2.0","id":9,"method":"session.list","params":[1]}"#, -32602, json!(9)),
        (
            r#"{"jsonrpc":"2.0","id":"s","method":"session.list","params":{"limit":"x"}}"#,
            -32602,
            json!("s"),
        ),
        ("\u{fffd}", -32700, json!(null)),
    ] {
        terminal.send(line).await;
        let answer = terminal.message().await.unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}");
    }
    for (method, params, field) in [
        ("agent.query", json!({}), "message"),
        ("agent.query", json!({ "message": 7 }), "message"),
        ("agent.query", json!({ "message": " " }), "message"),
        ("agent.query", json!({ "message": "x", "context": { "cwd": 1 } }), "context.cwd"),
        (
            "agent.query",
            json!({ "message": "x", "options": { "max_tokens": -1 } }),
            "options.max_tokens",
        ),
        (
            "agent.query",
            json!({ "message": "x", "options": { "temperature": 9 } }),
            "options.temperature",
        ),
        ("agent.query", json!({ "message": "x", "options": { "stream": "no" } }), "options.stream"),
        ("agent.cancel", json!({}), "query_id"),
        ("tool.approve", json!({ "execution_id": "exec-1" }), "approved"),
        ("tool.approve", json!({ "execution_id": 1, "approved": true }), "execution_id"),
        ("session.load", json!({}), "path"),
        ("session.load", json!({ "session_id": "../x" }), "session_id"),
        ("session.load", json!({ "session_id": "sess_none" }), "session_id"),
        ("session.save", json!({ "path": "here.json" }), "path"),
        ("session.export", json!({ "format": "pdf" }), "format"),
    ] {
        let error = terminal.request(method, params.clone()).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{method} {params}: {error}");
        assert_eq!(error["data"]["field"], field, "{method} {params}: {error}");
    }
    let outside = terminal.request("session.load", json!({ "path": "/etc/passwd.json" })).await;
    assert_eq!(outside.unwrap_err()["code"], -32005);
}

#[tokio::test]
async fn a_batch_gets_one_response() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let batch = r#"[{"jsonrpc":"2.0","id":"a","method":"session.list"},
        {"jsonrpc":"2.0","method":"context.update","params":{"cwd":"/tmp"}},
        7,{"jsonrpc":"2.0","id":2,"method":"none"}]"#;
    terminal.send(&batch.replace('\n', " ")).await;
    let answers = terminal.message().await.unwrap();
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!(null), &json!(2)]);
    let only_notes = r#"[{"jsonrpc":"2.0","method":"context.update","params":{}}]"#;
    terminal.send(only_notes).await;
    assert!(
        terminal.request("session.list", json!({})).await.is_ok(),
        "a batch of notifications has no response"
    );
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    terminal.send(&"x".repeat(11 * 1024 * 1024)).await;
    let refused = terminal.message().await.unwrap();
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &json!(null)));
    assert!(terminal.request("session.list", json!({})).await.is_ok());
}

#[tokio::test]
async fn requests_per_second_are_limited() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    for id in 0..400 {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "session.export" });
        terminal.send(&request.to_string()).await;
    }
    let mut refused = Vec::new();
    for _ in 0..400 {
        let answer = terminal.message().await.unwrap();
        refused.extend((answer["error"]["code"] == -32005).then(|| answer["error"].clone()));
    }
    assert!(!refused.is_empty());
    assert_eq!(refused[0]["data"]["limit"], 100);
    assert!(refused[0]["data"]["retry_after_ms"].as_u64().unwrap() <= 1000);
}

#[tokio::test]
async fn three_queries_may_be_open_and_run_in_order() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let (hang, text) = (json!([{ "text": "a", "hang": true }]), json!([{ "text": "b" }]));
    let first = terminal.query(world.workspace(), hang).await;
    let second = terminal.query(world.workspace(), text.clone()).await;
    let third = terminal.query(world.workspace(), text.clone()).await;
    let fourth = terminal.query_with(world.workspace(), text, json!({})).await.unwrap_err();
    assert_eq!((&fourth["code"], &fourth["data"]["limit"]), (&json!(-32005), &json!(3)));
    // A queued query can be cancelled before it starts.
    let cancelled = terminal.request("agent.cancel", json!({ "query_id": third })).await.unwrap();
    assert_eq!(cancelled["cancelled"], true);
    terminal.request("agent.cancel", json!({ "query_id": first })).await.unwrap();
    let mut ends = Vec::new();
    for _ in 0..3 {
        let notes = terminal.until("stream.complete").await;
        let end = of(&notes, "stream.complete")[0].clone();
        ends.push((end["query_id"].as_str().unwrap().to_owned(), end["status"].clone()));
    }
    let (cancelled, success) = (json!("cancelled"), json!("success"));
    assert_eq!(ends, [(third, cancelled.clone()), (first, cancelled), (second, success)]);
}

#[tokio::test]
async fn a_slow_reader_delays_no_client_and_gets_everything() {
    let world = World::start("").await;
    let mut slow = Terminal::ready(&world.terminal()).await;
    let word = "words and words and words and words ".repeat(40);
    let script = json!([{ "deltas": [word], "repeat": 2000 }]);
    let started = slow.query_with(world.workspace(), script, json!({})).await.unwrap();
    // It reads nothing until the turn has ended and another client was answered.
    world.client().until_over(started["session_id"].as_str().unwrap()).await;
    let mut quick = Terminal::ready(&world.terminal()).await;
    quick.query(world.workspace(), json!([{ "text": "quick" }])).await;
    assert_eq!(text(&quick.until("stream.complete").await), "quick");
    let notes = slow.until("stream.complete").await;
    assert_eq!(text(&notes).len(), word.len() * 2000);
    let batched = of(&notes, "stream.tokens");
    assert!(!batched.is_empty(), "it was behind");
    let many = batched.iter().flat_map(|batch| batch["tokens"].as_array().unwrap());
    assert!(many.count() >= batched.len());
}

#[tokio::test]
async fn the_original_client_gets_everything_without_batches() {
    let world = World::start("").await;
    let mut slow = Terminal::connect(&world.terminal()).await;
    let client = json!({ "name": "openagent-terminal", "version": "0.1.0" });
    let hello = json!({ "protocol_version": "1.0.0", "client_info": client });
    slow.request("initialize", hello).await.unwrap();
    let word = "words and words and words and words ".repeat(40);
    let script = json!([{ "deltas": [word], "repeat": 2000 }]);
    let started = slow.query_with(world.workspace(), script, json!({})).await.unwrap();
    world.client().until_over(started["session_id"].as_str().unwrap()).await;
    let notes = slow.until("stream.complete").await;
    assert!(of(&notes, "stream.tokens").is_empty());
    assert_eq!(text(&notes).len(), word.len() * 2000);
}

#[tokio::test]
async fn idle_connections_keep_no_terminal_out() {
    const IDLE: usize = 2000;
    crate::access::raise_open_files_limit();
    let world = World::start("").await;
    let mut first = Terminal::ready(&world.terminal()).await;
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(Terminal::connect(&world.terminal()).await);
    }
    let mut late = Terminal::ready(&world.terminal()).await;
    for terminal in [&mut first, &mut late] {
        assert!(terminal.request("session.list", json!({})).await.is_ok());
    }
    // The oldest connections that had sent nothing were closed.
    assert_eq!(idle[0].message().await, None);
    idle[IDLE - 1].initialize(json!([])).await;
}

#[tokio::test]
async fn every_client_gets_a_response_or_the_reason() {
    crate::access::raise_open_files_limit();
    let world = World::start("").await;
    let socket = world.terminal();
    let params = json!({ "protocol_version": "1.0.0", "client_info": { "name": "test" } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let answers = tokio::task::spawn_blocking(move || {
        let mut clients = Vec::new();
        for _ in 0..700 {
            let mut client = UnixStream::connect(&socket).unwrap();
            // A client that was refused by now cannot write, but can still read the reason.
            let _ = writeln!(client, "{request}");
            clients.push(client);
        }
        let read = |client: &UnixStream| {
            let mut line = String::new();
            BufReader::new(client).read_line(&mut line).unwrap();
            serde_json::from_str::<Value>(&line).unwrap()
        };
        clients.iter().map(read).collect::<Vec<_>>()
    });
    let (ready, refused): (Vec<Value>, Vec<Value>) =
        answers.await.unwrap().into_iter().partition(|answer| answer.get("result").is_some());
    assert!(ready.len() >= 512, "{} were answered", ready.len());
    assert!(!refused.is_empty());
    for answer in refused {
        assert_eq!(answer["error"]["message"], "too many connections");
    }
}
