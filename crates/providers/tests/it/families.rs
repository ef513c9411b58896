//! Tests of every family over a real connection: its path, its key header, and its parsing of
//! answers, errors and lists.

use std::path::Path;

use quintet_kernel::model::{FailureKind, FinishReason, ModelRef, Prompt};
use quintet_kernel::port::Models;
use quintet_providers::{Api, ProviderConfig, Providers};
use quintet_testkit::replay_server::{CannedReply, RecordedRequest, ReplayServer};

use crate::{KEY, Received, collect, config, scripted};

struct Case {
    api: Api,
    folder: &'static str,
    /// A stream in which a model thinks and calls two tools.
    stream: &'static str,
    path: &'static str,
    key: (&'static str, &'static str),
    list_path: &'static str,
    list: &'static str,
}

const BEARER: (&str, &str) = ("authorization", "Bearer sk-very-secret");
const OPENAI_LIST: &str = r#"{"data":[{"id":"one"},{"id":"two"}]}"#;

const CASES: [Case; 4] = [
    Case {
        api: Api::OpenAiChat,
        folder: "openai_chat",
        stream: "reasoning_content_and_parallel_calls",
        path: "/v1/chat/completions",
        key: BEARER,
        list_path: "/v1/models",
        list: OPENAI_LIST,
    },
    Case {
        api: Api::OpenAiResponses,
        folder: "openai_responses",
        stream: "reasoning_and_parallel_calls",
        path: "/v1/responses",
        key: BEARER,
        list_path: "/v1/models",
        list: OPENAI_LIST,
    },
    Case {
        api: Api::Anthropic,
        folder: "anthropic",
        stream: "thinking_and_parallel_calls",
        path: "/v1/messages",
        key: ("x-api-key", KEY),
        list_path: "/v1/models?limit=1000",
        list: r#"{"data":[{"type":"model","id":"one","display_name":"One"},{"id":"two"}],"has_more":false}"#,
    },
    Case {
        api: Api::Gemini,
        folder: "gemini",
        stream: "thoughts_and_parallel_calls",
        path: "/v1/models/mine:streamGenerateContent?alt=sse",
        key: ("x-goog-api-key", KEY),
        list_path: "/v1/models?pageSize=1000",
        list: r#"{"models":[
            {"name":"models/one","inputTokenLimit":9,"supportedGenerationMethods":["generateContent"]},
            {"name":"models/two","supportedGenerationMethods":["generateContent","countTokens"]},
            {"name":"models/embed","supportedGenerationMethods":["embedContent"]}]}"#,
    },
];

async fn serve(case: &Case, reply: CannedReply) -> (Providers, ReplayServer) {
    let server = ReplayServer::start(reply).await.unwrap();
    let base_url = format!("{}/v1", server.url());
    let config = ProviderConfig { api: case.api, models: Vec::new(), ..config(base_url) };
    (Providers::new(vec![config]), server)
}

async fn call(case: &Case, reply: CannedReply) -> (Received, Vec<RecordedRequest>) {
    let (providers, server) = serve(case, reply).await;
    let received = collect(providers.stream(scripted("{}"))).await;
    (received, server.asked())
}

#[tokio::test]
async fn answers_are_requested_and_parsed() {
    for case in &CASES {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case.folder);
        let stream = std::fs::read(golden.join(case.stream).with_extension("sse")).unwrap();
        let (received, asked) = call(case, CannedReply::stream(stream)).await;
        let [asked] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!((&*asked.method, &*asked.path), ("POST", case.path));
        assert_eq!(asked.headers.get(case.key.0).map(String::as_str), Some(case.key.1));
        assert!(asked.body.is_object());
        assert!(!received.thought.is_empty() && received.text == "I read both.", "{received:?}");
        let answer = received.answer();
        assert_eq!(
            (answer.finish, answer.calls.len()),
            (FinishReason::ToolCalls, 2),
            "{}",
            case.folder
        );
        assert!(answer.usage.total() > 0 && !answer.usage.estimated);
    }
}

#[tokio::test]
async fn a_wrong_key_is_tried_once() {
    for case in &CASES {
        let body = format!(r#"{{"error":{{"message":"wrong key {KEY}","type":"x"}}}}"#);
        let (received, asked) = call(case, CannedReply::json(401, &body)).await;
        assert_eq!((received.retries.len(), asked.len()), (0, 1));
        let failure = received.failure();
        assert_eq!(failure.kind, FailureKind::Unauthorized);
        assert!(!failure.message.contains(KEY), "{}", failure.message);
    }
}

#[tokio::test]
async fn an_empty_stream_is_retried() {
    for case in &CASES {
        let (received, asked) = call(case, CannedReply::stream("")).await;
        assert_eq!((received.retries.len(), asked.len()), (2, 3), "{}", case.folder);
        assert_eq!(received.failure().kind, FailureKind::Cut);
    }
}

#[tokio::test]
async fn lists_are_read() {
    for case in &CASES {
        let (providers, server) = serve(case, CannedReply::json(200, case.list)).await;
        let names: Vec<_> = providers.list().await.into_iter().map(|l| l.model.model).collect();
        assert_eq!(names, ["one", "two"], "{}", case.folder);
        let asked = server.asked();
        assert_eq!((&*asked[0].method, &*asked[0].path), ("GET", case.list_path));
        assert_eq!(asked[0].headers.get(case.key.0).map(String::as_str), Some(case.key.1));
    }
}

#[tokio::test]
async fn listing_models_detects_a_wrong_key() {
    for (status, usable) in [(401, false), (403, false), (404, true)] {
        let server = ReplayServer::start(CannedReply::json(status, "{}")).await.unwrap();
        let providers = Providers::new(vec![config(format!("{}/v1", server.url()))]);
        let listed = providers.list().await;
        assert_eq!((listed.len(), listed[0].usable), (1, usable), "{status}");
    }
}

#[tokio::test]
async fn missing_usage_is_estimated() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"12345678\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (providers, _server) = serve(&CASES[0], CannedReply::stream(stream)).await;
    let model = ModelRef { provider: "fake".into(), model: "mine".into() };
    let prompt = Prompt { model, ..scripted("{}") };
    let usage = collect(providers.stream(prompt)).await.answer().usage;
    assert!(usage.estimated && usage.input > 10, "{usage:?}");
    assert_eq!(usage.output, 2);
}
