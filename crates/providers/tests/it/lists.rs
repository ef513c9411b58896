//! Tests of lists of models.

use quintet_kernel::model::ModelRef;
use quintet_kernel::port::{ModelProfiles, Models};
use quintet_providers::{Api, ProviderConfig, Providers, Secret, Vendor};
use quintet_testkit::model_server::ModelServer;

use crate::config;

#[tokio::test]
async fn configured_models_then_listed_ones() {
    let server = ModelServer::start().await.unwrap();
    let silent = ProviderConfig { name: "gone".into(), ..config("http://127.0.0.1:1/v1".into()) };
    let demo = ProviderConfig {
        name: "demo".into(),
        api: Api::Demo,
        models: Vec::new(),
        ..config(String::new())
    };
    let providers = Providers::new(vec![silent, config(server.base_url()), demo]);
    for _ in 0..2 {
        let names = providers.list().await.into_iter().map(|listed| listed.model.to_string());
        let expected = ["gone/mine", "fake/mine", "fake/fake", "demo/demo"];
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn vendors_without_a_key_are_listed_but_not_usable() {
    let vendor = |name: &str| Vendor::named(name).unwrap().provider();
    let keyed = ProviderConfig {
        api_key: Some(Secret::new("sk-test-1234")),
        // No server answers there, so the catalogue is used.
        base_url: "http://127.0.0.1:1/v1".into(),
        ..vendor("anthropic")
    };
    let gone = ProviderConfig { base_url: "http://127.0.0.1:1/v1".into(), ..vendor("ollama") };
    let providers = Providers::new(vec![keyed, vendor("openai"), gone]);
    let listed = providers.list().await;
    let find = |name: &str| listed.iter().find(|listed| listed.model.to_string() == name).unwrap();
    let claude = find("anthropic/claude-sonnet-4-5");
    assert!(claude.usable && claude.about.thinking && claude.about.web_search);
    assert_eq!(claude.profile.context_window, Some(200_000));
    assert_eq!(claude.about.price.unwrap().input, 3_000_000);
    assert!(!find("openai/gpt-5.1").usable);
    assert!(listed.iter().all(|listed| listed.model.provider != "ollama"));
    let profile = |name: &str| providers.profile(&ModelRef::parse(name).unwrap());
    assert_eq!(profile("openai/gpt-4.1").unwrap().context_window, Some(1_047_576));
    assert_eq!(profile("openai/gpt-4o").unwrap().context_window, Some(128_000));
    assert_eq!(profile("nobody/x"), None);
}

#[test]
fn apis_have_names() {
    for api in Api::ALL {
        assert_eq!(Api::parse(api.name()), Some(api));
    }
    assert_eq!(Api::parse("openai-chat"), Some(Api::OpenAiChat));
    assert_eq!(Api::parse("telepathy"), None);
}
