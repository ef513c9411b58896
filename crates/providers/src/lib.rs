//! Model providers behind the kernel's port [`Models`].
//!
//! [`Providers`] holds one provider for each [`ProviderConfig`] and any [`InProcessModels`] of the daemon. A
//! provider belongs to an API family (OpenAI chat, OpenAI responses, Anthropic, Gemini), which writes requests
//! and parses answers; connections, retries, the circuit breaker and fallback are shared. A vendor that
//! differs from a family only by its address and its quirks is a row of `data/vendors.toml` ([`vendors`]), a
//! model a row of `data/models.toml`. [`demo`] is a rule-based model without a network.
//!
//! ```text
//! Prompt → inputs::fit → Family::body → HTTP → Decoder → family's parser → Chunk, Chunk, … Finished
//!             └── FallbackStream: next model ◄── Call: retry, breaker ◄── AttemptError
//! ```

mod accounts;
mod answer_parser;
mod anthropic;
mod breaker;
mod call;
mod calls;
mod catalogue;
mod config;
mod decoder;
pub mod demo;
mod embeddings;
mod endpoint;
mod facts;
mod fallback;
mod family;
mod gemini;
#[cfg(test)]
mod golden;
mod http;
mod ids;
mod inputs;
mod media;
mod model_list_cache;
mod openai_chat;
mod openai_responses;
mod provider;
mod provider_error;
mod quirks;
mod response_reader;
mod retry;
mod sources;
mod sse;
mod template;
mod tokenizer;
mod tokens;
mod tools_cache;
mod vendor;
mod voice;

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::{
    Chunk, Failure, FailureKind, ModelInfo, ModelRef, Price, Profile, Prompt, TokenCount,
};
use quintet_kernel::port::{BoxFuture, ModelProfiles, ModelStream, Models};
use tokio::task::JoinSet;

pub use accounts::Accounts;
use accounts::KeySource;
pub use config::{Api, ModelOverrides, ProviderConfig, Retries, Secret, Timeouts};
pub use embeddings::HttpEmbedder;
use fallback::FallbackStream;
use http::Http;
use provider::Provider;
pub use quirks::{EffortStyle, Quirks};
pub use vendor::{Vendor, vendors};
pub use voice::{HttpRecognizer, HttpSpeaker};

/// All configured providers. Clones share them.
#[derive(Clone, Debug)]
pub struct Providers {
    providers: Arc<[Arc<Provider>]>,
    in_process: Vec<(String, Arc<dyn InProcessModels>)>,
    fallback: Arc<[ModelRef]>,
    demo_interval: Duration,
    accounts: Option<Arc<dyn Accounts>>,
}

/// Models that run inside the daemon and are called without HTTP.
pub trait InProcessModels: Models {}

impl<T: Models> InProcessModels for T {}

impl Providers {
    /// The providers of a configuration. Cheap: nothing is read or connected yet.
    pub fn new(configs: Vec<ProviderConfig>) -> Self {
        let http = Arc::new(Http::default());
        let provider = |config| Arc::new(Provider::new(config, &http));
        let providers = configs.into_iter().map(provider).collect();
        let (in_process, fallback) = (Vec::new(), Arc::default());
        Self { providers, in_process, fallback, demo_interval: demo::WORD_INTERVAL, accounts: None }
    }

    /// Sets the wait between words of the demo model.
    #[must_use]
    pub fn with_demo_interval(self, demo_interval: Duration) -> Self {
        Self { demo_interval, ..self }
    }

    /// Adds a provider of this name whose models run inside the daemon.
    #[must_use]
    pub fn with_in_process(mut self, name: &str, models: Arc<dyn InProcessModels>) -> Self {
        self.in_process.push((name.into(), models));
        self
    }

    /// Sets the models that answer, in this order, if the requested one cannot.
    #[must_use]
    pub fn with_fallback(self, models: Vec<ModelRef>) -> Self {
        Self { fallback: models.into(), ..self }
    }

    /// Uses the API keys of users who have entered their own.
    #[must_use]
    pub fn with_accounts(self, accounts: Arc<dyn Accounts>) -> Self {
        Self { accounts: Some(accounts), ..self }
    }

    fn provider(&self, model: &ModelRef) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.config.name == model.provider)
    }

    fn in_process(&self, model: &ModelRef) -> Option<&dyn InProcessModels> {
        let (_, models) = self.in_process.iter().find(|(name, _)| *name == model.provider)?;
        Some(models.as_ref())
    }

    fn start(
        &self,
        mut prompt: Prompt,
        max_retry_wait: Duration,
    ) -> Result<Box<dyn ModelStream>, Failure> {
        if let Some(in_process) = self.in_process(&prompt.model) {
            if let Some(profile) = in_process.profile(&prompt.model) {
                inputs::fit(&mut prompt, &profile, |_, _| true)?;
            }
            return Ok(in_process.stream(prompt));
        }
        let provider = self.provider(&prompt.model).ok_or_else(|| Failure {
            kind: FailureKind::UnknownModel,
            message: format!("there is no provider {:?}", prompt.model.provider),
        })?;
        let key_source = self.accounts.as_ref().zip(prompt.account.clone());
        let key_source =
            key_source.map(|(accounts, account)| KeySource::new(Arc::clone(accounts), account));
        provider.stream(prompt, (self.demo_interval, max_retry_wait), key_source)
    }
}

impl Models for Providers {
    fn stream(&self, prompt: Prompt) -> Box<dyn ModelStream> {
        if !self.fallback.is_empty() {
            return Box::new(FallbackStream::new(self.clone(), prompt));
        }
        self.start(prompt, Duration::MAX).unwrap_or_else(|failure| Box::new(FailedStream(failure)))
    }

    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        Box::pin(async {
            let mut listed = list(&self.providers).await;
            for (_, models) in &self.in_process {
                listed.extend(models.list().await);
            }
            listed
        })
    }
}

impl ModelProfiles for Providers {
    fn profile(&self, model: &ModelRef) -> Option<Profile> {
        match self.in_process(model) {
            Some(in_process) => in_process.profile(model),
            None => Some(self.provider(model)?.facts(&model.model).profile),
        }
    }

    fn count(&self, model: &ModelRef, text: &str) -> TokenCount {
        match (self.in_process(model), self.provider(model)) {
            (Some(in_process), _) => in_process.count(model, text),
            (None, Some(provider)) => provider.count(&model.model, text),
            (None, None) => TokenCount::guess(text),
        }
    }

    fn price(&self, model: &ModelRef) -> Option<Price> {
        match self.in_process(model) {
            Some(in_process) => in_process.price(model),
            None => self.provider(model)?.price(&model.model),
        }
    }
}

/// Lists the models of all providers concurrently, because each may be slow.
async fn list(providers: &[Arc<Provider>]) -> Vec<ModelInfo> {
    let mut asked = JoinSet::new();
    for (place, provider) in providers.iter().map(Arc::clone).enumerate() {
        asked.spawn(async move { (place, provider.models().await) });
    }
    let mut lists = asked.join_all().await;
    lists.sort_unstable_by_key(|(place, _)| *place);
    lists.into_iter().flat_map(|(_, models)| models).collect()
}

/// A call that failed before it started.
struct FailedStream(Failure);

impl ModelStream for FailedStream {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}
