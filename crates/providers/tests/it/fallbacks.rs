//! Tests of fallback to other models.

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{FailureKind, ModelRef};
use quintet_kernel::port::{ModelProfiles as _, Models};
use quintet_providers::{Api, ProviderConfig, Providers, Vendor};
use quintet_testkit::model_server::ModelServer;

use crate::{Received, collect, config, scripted};

/// `fake` is the requested provider; `other` follows the script `step`.
async fn call(first: ProviderConfig, step: &str) -> Received {
    let server = ModelServer::start().await.unwrap();
    let other = ProviderConfig { name: "other".into(), ..config(server.base_url()) };
    let fallback = ["fake/mine", "nobody/x", "other/y"].map(|name| ModelRef::parse(name).unwrap());
    let providers = Providers::new(vec![first, other]).with_fallback(fallback.into());
    collect(providers.stream(scripted(step))).await
}

fn unreachable() -> ProviderConfig {
    config("http://127.0.0.1:1/v1".into())
}

#[tokio::test]
async fn the_next_model_answers_and_is_reported() {
    let received = call(unreachable(), r#"{"text":"hi"}"#).await;
    let reasons: Vec<_> = received.retries.iter().map(|(n, _, reason)| (*n, &**reason)).collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert_eq!(reasons[3], (5, "there is no provider \"nobody\"; asking other/y instead"));
    assert_eq!(received.text, "hi");
    assert_eq!(received.answer().by, ModelRef::parse("other/y"));
}

#[tokio::test]
async fn retries_are_short_if_there_is_a_fallback() {
    let server = ModelServer::start().await.unwrap();
    let other = ProviderConfig { name: "other".into(), ..config(server.base_url()) };
    let providers = Providers::new(vec![config(server.base_url()), other]);
    let providers = providers.with_fallback(vec![ModelRef::parse("other/y").unwrap()]);
    let step = r#"{"status":429,"retry_after":50,"fail_times":1,"text":"hi"}"#;
    let received = collect(providers.stream(scripted(step))).await;
    assert_eq!((received.retries.len(), &*received.text), (1, "hi"));
    assert!(received.retries[0].2.ends_with("asking other/y instead"), "{:?}", received.retries);
}

#[tokio::test]
async fn a_provider_without_a_key_is_not_called() {
    let first = Vendor::named("anthropic").unwrap().provider();
    let first = ProviderConfig { name: "fake".into(), ..first };
    let received = call(first, r#"{"text":"hi"}"#).await;
    assert!(received.retries[0].2.starts_with("there is no key for fake: set ANTHROPIC_API_KEY"));
    assert_eq!(received.text, "hi");
}

#[tokio::test]
async fn an_error_of_the_prompt_is_not_retried_elsewhere() {
    let server = ModelServer::start().await.unwrap();
    let step = r#"{"status":400,"code":"context_length_exceeded"}"#;
    let received = call(config(server.base_url()), step).await;
    assert!(received.retries.is_empty());
    assert_eq!(received.failure().kind, FailureKind::ContextOverflow);
}

#[tokio::test]
async fn a_started_answer_is_not_continued_by_another_model() {
    let server = ModelServer::start().await.unwrap();
    let received = call(config(server.base_url()), r#"{"text":"a","cut":true}"#).await;
    assert_eq!((&*received.text, received.retries.len()), ("a", 0));
    assert_eq!(received.failure().kind, FailureKind::Cut);
}

#[tokio::test]
async fn an_in_process_model_can_be_a_fallback() {
    let inside = Arc::new(Providers::new(vec![ProviderConfig::new("here", Api::Demo)]));
    let fallback = vec![ModelRef::parse("here/demo").unwrap()];
    let providers = Providers::new(vec![unreachable()]).with_in_process("here", inside);
    let providers = providers.with_fallback(fallback.clone());
    let received = collect(providers.stream(scripted(r#"{"text":"hi"}"#))).await;
    assert_eq!(received.answer().by.as_ref(), fallback.first());
    assert!(providers.list().await.iter().any(|listed| listed.model == fallback[0]));
    assert!(!providers.profile(&fallback[0]).unwrap().inputs.contains(&MediaKind::Image));
}
