//! What can be chosen.

use quintet_kernel::port::Models;
use quintet_providers::{Api, ProviderConfig, Providers};
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

#[test]
fn apis_have_names() {
    for api in Api::ALL {
        assert_eq!(Api::parse(api.name()), Some(api));
    }
    assert_eq!(Api::parse("openai-chat"), Some(Api::OpenAiChat));
    assert_eq!(Api::parse("telepathy"), None);
}
