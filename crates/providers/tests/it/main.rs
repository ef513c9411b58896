//! Integration tests of providers with a scripted model server on loopback.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod answers;
mod counts;
mod failures;
mod fallbacks;
mod families;
mod lists;
mod search;
mod secrets;

use std::time::Duration;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{
    Channel, Chunk, Failure, ModelRef, ModelResponse, Prompt, PromptMessage, PromptPart, Sampling,
    WebSearch,
};
use quintet_kernel::port::{ModelStream, Models};
use quintet_providers::{Api, ModelOverrides, ProviderConfig, Providers, Retries, Secret};
use quintet_testkit::model_server::ModelServer;

const KEY: &str = "sk-very-secret";

fn config(base_url: String) -> ProviderConfig {
    ProviderConfig {
        base_url,
        api_key: Some(Secret::new(KEY)),
        models: vec!["mine".into()],
        overrides: ModelOverrides {
            inputs: Some(vec![MediaKind::Image]),
            ..ModelOverrides::default()
        },
        retries: Retries {
            max_retries: 2,
            first_wait: Duration::from_millis(2),
            longest_wait: Duration::from_millis(5),
        },
        ..ProviderConfig::new("fake", Api::OpenAiChat)
    }
}

fn prompt(parts: Vec<PromptPart>) -> Prompt {
    Prompt {
        model: ModelRef { provider: "fake".into(), model: "mine".into() },
        system: "be brief".into(),
        messages: vec![PromptMessage::User(parts).into()],
        tools: Vec::new(),
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling::default(),
        account: None,
    }
}

fn scripted(steps: &str) -> Prompt {
    prompt(vec![PromptPart::Text(format!("{{{{script: [{steps}]}}}}"))])
}

/// The result of a call.
#[derive(Debug, Default)]
struct Received {
    text: String,
    thought: String,
    retries: Vec<(u32, Duration, String)>,
    end: Option<Result<ModelResponse, Failure>>,
}

impl Received {
    fn answer(self) -> ModelResponse {
        self.end.unwrap().unwrap()
    }

    fn failure(self) -> Failure {
        self.end.unwrap().unwrap_err()
    }
}

async fn collect(mut stream: Box<dyn ModelStream>) -> Received {
    let mut received = Received::default();
    while received.end.is_none() {
        let chunks = match stream.next().await {
            Ok(chunks) => chunks,
            Err(failure) => {
                received.end = Some(Err(failure));
                break;
            }
        };
        for chunk in chunks {
            assert!(received.end.is_none(), "nothing follows the end");
            match chunk {
                Chunk::Output(Channel::Text, text) => received.text += &text,
                Chunk::Output(Channel::Thought, text) => received.thought += &text,
                Chunk::Retrying { attempt, wait, reason } => {
                    received.retries.push((attempt, wait, reason));
                }
                Chunk::Finished(answer) => received.end = Some(Ok(answer)),
            }
        }
    }
    received
}

/// Calls a scripted server and collects the result.
async fn call(steps: &str) -> (Received, ModelServer) {
    let server = ModelServer::start().await.unwrap();
    let providers = Providers::new(vec![config(server.base_url())]);
    let received = collect(providers.stream(scripted(steps))).await;
    (received, server)
}
