//! Tests of calls that succeed.

use std::time::Duration;

use quintet_kernel::BlobId;
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Chunk, FinishReason, PromptPart, RawToolCall, Usage};
use quintet_kernel::port::Models;
use quintet_providers::Providers;
use quintet_testkit::model_server::ModelServer;
use serde_json::json;

use crate::{call, collect, config, prompt, scripted};

#[tokio::test]
async fn text_thought_and_usage() {
    let (received, server) =
        call(r#"{"thought":"hm","deltas":["für ","dich ☀ "],"repeat":300,"usage":[11,12,5,2]}"#)
            .await;
    assert_eq!((&*received.thought, &received.text), ("hm", &"für dich ☀ ".repeat(300)));
    let answer = received.answer();
    assert_eq!(answer.finish, FinishReason::Stop);
    assert_eq!(
        answer.usage,
        Usage { input: 11, output: 12, cached: 5, reasoning: 2, ..Usage::default() }
    );
    let asked = &server.calls()[0];
    assert_eq!((&asked["model"], &asked["stream"]), (&json!("mine"), &json!(true)));
}

#[tokio::test]
async fn split_tool_calls() {
    let (received, _server) = call(
        r#"{"text":"so","tools":[{"id":"a","name":"shell","args":{"command":"echo é"}},
            {"id":"b","name":"read_file","args":{"path":"x"}}]}"#,
    )
    .await;
    assert_eq!(received.text, "so");
    let answer = received.answer();
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    let call = |id: &str, tool: &str, arguments: &str| RawToolCall {
        id: id.into(),
        tool: tool.into(),
        arguments: arguments.into(),
    };
    let expected =
        [call("a", "shell", r#"{"command":"echo é"}"#), call("b", "read_file", r#"{"path":"x"}"#)];
    assert_eq!(answer.calls, expected);
}

#[tokio::test]
async fn a_plain_json_answer_is_accepted() {
    let (received, _server) =
        call(r#"{"plain":true,"thought":"hm","text":"hi","tools":[{"name":"t"}],"usage":[1,2]}"#)
            .await;
    assert_eq!((&*received.thought, &*received.text), ("hm", "hi"));
    let answer = received.answer();
    assert_eq!((answer.calls.len(), answer.usage.total()), (1, 3));
}

#[tokio::test]
async fn images_are_in_the_request() {
    let server = ModelServer::start().await.unwrap();
    let providers = Providers::new(vec![config(server.base_url())]);
    let image = PromptPart::Media {
        kind: MediaKind::Image,
        name: "a.png".into(),
        mime: "image/png".into(),
        blob: BlobId::parse("00").unwrap(),
        content: b"\x89PNG".as_slice().into(),
        detail: None,
    };
    let received =
        collect(providers.stream(prompt(vec![PromptPart::Text("see".into()), image]))).await;
    assert_eq!(received.text, "echo: see");
    let url = server.calls()[0]["messages"][1]["content"][1]["image_url"]["url"].clone();
    assert_eq!(url, "data:image/png;base64,iVBORw==");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let server = ModelServer::start().await.unwrap();
    let providers = Providers::new(vec![config(server.base_url())]);
    let mut stream = providers.stream(scripted(r#"{"text":"a","hang":true}"#));
    stream.next().await.unwrap();
    server.streaming(1).await;
    drop(stream);
    server.streaming(0).await;
}

#[tokio::test]
async fn a_dropped_wait_loses_nothing() {
    let server = ModelServer::start().await.unwrap();
    let providers = Providers::new(vec![config(server.base_url())]);
    let mut stream =
        providers.stream(scripted(r#"{"deltas":["a","b","c"],"repeat":5,"gap_ms":2}"#));
    let mut text = String::new();
    loop {
        let wait = Duration::from_micros(300);
        let Ok(chunks) = tokio::time::timeout(wait, stream.next()).await else { continue };
        for chunk in chunks.unwrap() {
            match chunk {
                Chunk::Output(_, more) => text += &more,
                _ => return assert_eq!(text, "abc".repeat(5)),
            }
        }
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = ModelServer::start().await.unwrap();
    let providers = Providers::new(vec![config(server.base_url())]);
    for _ in 0..20 {
        collect(providers.stream(scripted(r#"{"text":"a"}"#))).await.answer();
    }
    // Sometimes a connection is still being closed when the next call starts.
    assert!(server.connections() < 10, "{}", server.connections());
}
