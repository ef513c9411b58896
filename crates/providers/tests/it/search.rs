//! Tests of a provider's own search over a real connection.

use std::path::Path;

use quintet_kernel::model::{ModelRef, Prompt, SearchSupport, WebSearch};
use quintet_kernel::port::{ModelProfiles, Models};
use quintet_providers::{Api, ProviderConfig, Providers};
use quintet_testkit::replay_server::{CannedReply, ReplayServer};
use serde_json::{Value, json};

use crate::{collect, config, scripted};

struct Case {
    api: Api,
    vendor: &'static str,
    model: &'static str,
    folder: &'static str,
    search: SearchSupport,
    tool: fn() -> Value,
    text: &'static str,
}

const CASES: [Case; 3] = [
    Case {
        api: Api::OpenAiResponses,
        vendor: "openai",
        model: "gpt-5-mini",
        folder: "openai_responses",
        search: SearchSupport::WithTools,
        tool: || json!({ "type": "web_search" }),
        text: "Whales are back.",
    },
    Case {
        api: Api::Anthropic,
        vendor: "anthropic",
        model: "claude-sonnet-4-5",
        folder: "anthropic",
        search: SearchSupport::WithTools,
        tool: || json!({ "type": "web_search_20250305", "name": "web_search", "max_uses": 8 }),
        text: "I'll check.It is sunny. Go out.",
    },
    Case {
        api: Api::Gemini,
        vendor: "google",
        model: "gemini-2.5-flash",
        folder: "gemini",
        search: SearchSupport::WithoutTools,
        tool: || json!({ "google_search": {} }),
        text: "Spain won Euro 2024.",
    },
];

/// A server that answers with the family's search, and a provider with or without native search.
async fn serve(case: &Case, native_search: bool) -> (Providers, ReplayServer) {
    let file = format!("tests/golden/{}/web_search.sse", case.folder);
    let stream = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let server = ReplayServer::start(CannedReply::stream(stream)).await.unwrap();
    let url = format!("{}/v1", server.url());
    let (api, vendor) = (case.api, case.vendor.to_owned());
    let provider = ProviderConfig { api, vendor, native_search, ..config(url) };
    (Providers::new(vec![provider]), server)
}

fn prompt(model: &str, search: WebSearch) -> Prompt {
    let model = ModelRef { provider: "fake".into(), model: model.into() };
    Prompt { model, search, ..scripted("{}") }
}

#[tokio::test]
async fn search_is_requested_if_enabled() {
    for case in &CASES {
        let (providers, server) = serve(case, true).await;
        let asked = prompt(case.model, WebSearch::Native);
        assert_eq!(providers.profile(&asked.model).unwrap().search, case.search, "{}", case.folder);
        let received = collect(providers.stream(asked)).await;
        assert_eq!(received.text, case.text);
        assert!(received.thought.contains("[searching the web: "), "{}", received.thought);
        assert_eq!(server.asked()[0].body["tools"], json!([(case.tool)()]), "{}", case.folder);
    }
}

#[tokio::test]
async fn search_is_not_requested_if_disabled() {
    for case in &CASES {
        for (native, model, asked, known) in [
            (false, case.model, WebSearch::Native, SearchSupport::Off),
            (true, case.model, WebSearch::Off, case.search),
            (true, "nobody-knows-it", WebSearch::Native, SearchSupport::Never),
        ] {
            let (providers, server) = serve(case, native).await;
            let prompt = prompt(model, asked);
            assert_eq!(providers.profile(&prompt.model).unwrap().search, known, "{}", case.folder);
            collect(providers.stream(prompt)).await.answer();
            assert_eq!(server.asked()[0].body["tools"], Value::Null, "{}", case.folder);
        }
    }
}

#[tokio::test]
async fn a_family_without_search_never_searches() {
    let server = ReplayServer::start(CannedReply::stream("")).await.unwrap();
    let vendor = "xai".to_owned();
    let provider = ProviderConfig { vendor, native_search: true, ..config(server.url()) };
    let grok = ModelRef { provider: "fake".into(), model: "grok-4".into() };
    let profile = Providers::new(vec![provider]).profile(&grok).unwrap();
    assert_eq!(profile.search, SearchSupport::Never);
}
