//! Tests of calls that fail, at first or finally.

use std::time::Duration;

use quintet_kernel::BlobId;
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Chunk, FailureKind, PromptPart};
use quintet_kernel::port::Models;
use quintet_providers::{ProviderConfig, Providers, Timeouts};
use quintet_testkit::model_server::ModelServer;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::{KEY, Received, call, collect, config, prompt, scripted};

#[tokio::test]
async fn a_busy_provider_is_retried() {
    let (received, server) =
        call(r#"{"status":429,"message":"slow down","fail_times":2,"text":"hi"}"#).await;
    assert_eq!(received.text, "hi");
    let tries: Vec<_> = received.retries.iter().map(|(attempt, ..)| *attempt).collect();
    assert_eq!(tries, [2, 3]);
    assert_eq!(received.retries[0].2, "the provider answered 429: slow down");
    received.answer();
    assert_eq!(server.calls().len(), 3);
}

#[tokio::test]
async fn retries_end() {
    for (status, kind) in [(429, FailureKind::RateLimited), (503, FailureKind::Unavailable)] {
        let (received, server) = call(&format!(r#"{{"status":{status}}}"#)).await;
        assert_eq!((received.retries.len(), received.failure().kind), (2, kind));
        assert_eq!(server.calls().len(), 3);
    }
}

#[tokio::test]
async fn the_provider_sets_the_wait() {
    let server = ModelServer::start().await.unwrap();
    let providers = Providers::new(vec![config(server.base_url())]);
    for (header, seconds) in [("7", 7), ("3600", 60), (r#""Fri, 31 Dec 9999 23:59:59 GMT""#, 60)] {
        let step = format!(r#"{{"status":429,"retry_after":{header}}}"#);
        let first = providers.stream(scripted(&step)).next().await.unwrap();
        let [Chunk::Retrying { wait, .. }] = first.as_slice() else { panic!("{first:?}") };
        assert_eq!(*wait, Duration::from_secs(seconds), "{header}");
    }
    let (received, _server) =
        call(r#"{"status":503,"retry_after":0,"fail_times":1,"text":"hi"}"#).await;
    assert_eq!((received.retries[0].1, &*received.text), (Duration::ZERO, "hi"));
}

#[tokio::test]
async fn some_errors_are_not_retried() {
    let check = |step: &'static str, kind| async move {
        let (received, server) = call(step).await;
        assert_eq!((received.retries.len(), server.calls().len()), (0, 1), "{step}");
        assert_eq!(received.failure().kind, kind, "{step}");
    };
    check(r#"{"status":401}"#, FailureKind::Unauthorized).await;
    check(r#"{"status":403}"#, FailureKind::Unauthorized).await;
    check(r#"{"status":404}"#, FailureKind::UnknownModel).await;
    check(r#"{"status":400,"code":"context_length_exceeded"}"#, FailureKind::ContextOverflow).await;
    check(r#"{"status":400}"#, FailureKind::Rejected).await;
    check(r#"{"text":"a","garbage":true}"#, FailureKind::Malformed).await;
}

#[tokio::test]
async fn a_failure_names_a_remedy() {
    let check = async |step: &str, remedy: &str| {
        let (received, _server) = call(step).await;
        let message = &received.failure().message;
        assert!(message.contains(remedy), "{message}");
    };
    check(r#"{"status":401}"#, "`quintet keys set fake` replaces it").await;
    check(r#"{"status":404}"#, "`quintet models` lists the models").await;
    let given_up = "gave up after 3 tries; wait, or set `models.fallback`";
    check(r#"{"status":429}"#, given_up).await;
    check(r#"{"status":503}"#, given_up).await;
}

#[tokio::test]
async fn the_key_is_redacted() {
    let (received, _server) =
        call(&format!(r#"{{"status":401,"message":"wrong key {KEY}, sir"}}"#)).await;
    let message = &received.failure().message;
    assert!(message.starts_with("the provider answered 401: wrong key ***, sir"), "{message}");
    let shown = format!("{:?}", Providers::new(vec![config(String::new())]));
    assert!(!shown.contains(KEY), "{shown}");
}

#[tokio::test]
async fn a_cut_off_answer_keeps_its_text_and_is_not_retried() {
    let (received, server) = call(r#"{"deltas":["a","b"],"cut":true}"#).await;
    assert_eq!((&*received.text, received.retries.len()), ("ab", 0));
    assert_eq!(received.failure().kind, FailureKind::Cut);
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn a_cut_off_before_the_first_output_is_retried() {
    let (received, server) = call(r#"{"cut":true}"#).await;
    assert_eq!((received.retries.len(), server.calls().len()), (2, 3));
    assert_eq!(received.failure().kind, FailureKind::Cut);
}

/// The answer had a finish reason, but the connection broke before the stream ended.
#[tokio::test]
async fn a_cut_off_after_the_last_output_is_still_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let providers = Providers::new(vec![config(url)]);
    let answer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _request = stream.read(&mut [0; 65536]).await.unwrap();
        let data = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
        let whole = format!("{head}\r\n\r\n{:x}\r\n{data}\n\n\r\n", data.len() + 2);
        stream.write_all(whole.as_bytes()).await.unwrap();
    };
    let (received, ()) = tokio::join!(collect(providers.stream(scripted("{}"))), answer);
    assert_eq!(received.text, "a");
    assert_eq!(received.failure().kind, FailureKind::Cut);
}

async fn with_timeouts(step: &str, timeouts: Timeouts) -> Received {
    let server = ModelServer::start().await.unwrap();
    let providers = Providers::new(vec![ProviderConfig { timeouts, ..config(server.base_url()) }]);
    collect(providers.stream(scripted(step))).await
}

#[tokio::test]
async fn silence_is_a_failure() {
    let short = Duration::from_millis(200);
    // The text must arrive within this time.
    let idle = Timeouts { idle: Duration::from_secs(2), ..Timeouts::default() };
    let received = with_timeouts(r#"{"text":"a","hang":true}"#, idle).await;
    assert_eq!(received.text, "a");
    assert_eq!(received.failure().message, "the answer stopped coming");
    let header = Timeouts { header: short, ..Timeouts::default() };
    let received = with_timeouts(r#"{"text":"a","delay_ms":60000}"#, header).await;
    assert_eq!(received.failure().message, "the provider does not answer");
    let total = Timeouts { total: short, ..Timeouts::default() };
    let received = with_timeouts(r#"{"text":"a","repeat":600,"gap_ms":100}"#, total).await;
    let failure = received.failure();
    assert_eq!(failure.message, "the answer took too long");
    assert_eq!(failure.kind, FailureKind::Stalled);
}

#[tokio::test]
async fn an_unreachable_provider() {
    let server = ModelServer::start().await.unwrap();
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    drop(server);
    let providers = Providers::new(vec![config(format!("http://{gone}/v1"))]);
    let received = collect(providers.stream(scripted(""))).await;
    assert_eq!((received.retries.len(), received.failure().kind), (2, FailureKind::Unavailable));
    let providers = Providers::new(vec![config("no address".into())]);
    let received = collect(providers.stream(scripted(""))).await;
    assert_eq!((received.retries.len(), received.failure().kind), (0, FailureKind::Rejected));
}

#[tokio::test]
async fn unsupported_media_are_not_sent() {
    let server = ModelServer::start().await.unwrap();
    let providers = Providers::new(vec![config(server.base_url())]);
    let media = |kind, mime: &str| PromptPart::Media {
        kind,
        name: "a".into(),
        mime: mime.into(),
        blob: BlobId::parse("00").unwrap(),
        content: b"text".as_slice().into(),
        detail: None,
    };
    let sound = prompt(vec![media(MediaKind::Audio, "audio/wav")]);
    let failure = collect(providers.stream(sound)).await.failure();
    assert_eq!(failure.kind, FailureKind::UnsupportedInput);
    assert!(server.calls().is_empty());
    let text = prompt(vec![media(MediaKind::File, "text/markdown")]);
    collect(providers.stream(text)).await.answer();
}

#[tokio::test]
async fn an_unknown_provider_is_an_unknown_model() {
    let received = collect(Providers::new(Vec::new()).stream(scripted(""))).await;
    assert_eq!(received.failure().kind, FailureKind::UnknownModel);
}
