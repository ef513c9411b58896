//! Models behind the kernel's port [`Models`]: families of model APIs, spoken over HTTP, and a
//! small model for demonstrations inside the daemon.
//!
//! A vendor that differs from a family only by its address is a row of [`ProviderConfig`].

mod accounts;
mod anthropic;
mod breaker;
mod call;
mod calls;
mod catalogue;
mod config;
mod decoder;
pub mod demo;
mod draft;
mod embeddings;
mod endpoint;
mod facts;
mod fallback;
mod family;
mod fault;
mod gemini;
#[cfg(test)]
mod golden;
mod http;
mod ids;
mod inputs;
mod listing;
mod media;
mod offer;
mod openai_chat;
mod openai_responses;
mod provider;
mod quirks;
mod reading;
mod retry;
mod sources;
mod sse;
mod template;
mod tokenizer;
mod tokens;
mod vendor;
mod voice;

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::{
    Chunk, Count, Failure, FailureKind, Listed, ModelRef, Profile, Prompt,
};
use quintet_kernel::port::{BoxFuture, ModelStream, Models, Profiles};
use tokio::task::JoinSet;

pub use accounts::Accounts;
use accounts::Payer;
pub use config::{Api, ProviderConfig, Retries, Secret, Stated, Timeouts};
pub use embeddings::HttpEmbedder;
use fallback::Chain;
use http::Http;
use provider::Provider;
pub use quirks::{EffortStyle, Quirks};
pub use vendor::{Vendor, vendors};
pub use voice::{HttpRecognizer, HttpSpeaker};

/// Every provider that is configured. Clones are the same providers.
#[derive(Clone, Debug)]
pub struct Providers {
    providers: Arc<[Arc<Provider>]>,
    inside: Vec<(String, Arc<dyn Inside>)>,
    fallback: Arc<[ModelRef]>,
    demo_pace: Duration,
    accounts: Option<Arc<dyn Accounts>>,
}

/// Models that are asked in another way than over the network.
pub trait Inside: Models {}

impl<T: Models> Inside for T {}

impl Providers {
    /// Takes the providers of the configuration. Cheap: nothing is read or connected yet.
    pub fn new(configs: Vec<ProviderConfig>) -> Self {
        let http = Arc::new(Http::default());
        let provider = |config| Arc::new(Provider::new(config, &http));
        let providers = configs.into_iter().map(provider).collect();
        let (inside, fallback) = (Vec::new(), Arc::default());
        Self { providers, inside, fallback, demo_pace: demo::PACE, accounts: None }
    }

    /// Has the demo model wait this long between words.
    #[must_use]
    pub fn with_demo_pace(self, demo_pace: Duration) -> Self {
        Self { demo_pace, ..self }
    }

    /// Adds a provider of this name that is asked in its own way.
    #[must_use]
    pub fn with_inside(mut self, name: &str, models: Arc<dyn Inside>) -> Self {
        self.inside.push((name.into(), models));
        self
    }

    /// Has these models asked, in this order, where the one that was asked cannot answer.
    #[must_use]
    pub fn with_fallback(self, models: Vec<ModelRef>) -> Self {
        Self { fallback: models.into(), ..self }
    }

    /// Has people who have means of their own ask models with these.
    #[must_use]
    pub fn with_accounts(self, accounts: Arc<dyn Accounts>) -> Self {
        Self { accounts: Some(accounts), ..self }
    }

    fn provider(&self, model: &ModelRef) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.config.name == model.provider)
    }

    fn inside(&self, model: &ModelRef) -> Option<&dyn Inside> {
        let (_, models) = self.inside.iter().find(|(name, _)| *name == model.provider)?;
        Some(models.as_ref())
    }

    fn start(
        &self,
        mut prompt: Prompt,
        patience: Duration,
    ) -> Result<Box<dyn ModelStream>, Failure> {
        if let Some(inside) = self.inside(&prompt.model) {
            if let Some(profile) = inside.profile(&prompt.model) {
                inputs::fit(&mut prompt, &profile, |_, _| true)?;
            }
            return Ok(inside.stream(prompt));
        }
        let provider = self.provider(&prompt.model).ok_or_else(|| Failure {
            kind: FailureKind::UnknownModel,
            message: format!("there is no provider {:?}", prompt.model.provider),
        })?;
        let payer = self.accounts.as_ref().zip(prompt.account.clone());
        let payer = payer.map(|(accounts, account)| Payer::new(Arc::clone(accounts), account));
        provider.stream(prompt, (self.demo_pace, patience), payer)
    }
}

impl Models for Providers {
    fn stream(&self, prompt: Prompt) -> Box<dyn ModelStream> {
        if !self.fallback.is_empty() {
            return Box::new(Chain::new(self.clone(), prompt));
        }
        self.start(prompt, Duration::MAX).unwrap_or_else(|failure| Box::new(Failed(failure)))
    }

    fn list(&self) -> BoxFuture<'_, Vec<Listed>> {
        Box::pin(async {
            let mut listed = list(&self.providers).await;
            for (_, models) in &self.inside {
                listed.extend(models.list().await);
            }
            listed
        })
    }
}

impl Profiles for Providers {
    fn profile(&self, model: &ModelRef) -> Option<Profile> {
        match self.inside(model) {
            Some(inside) => inside.profile(model),
            None => Some(self.provider(model)?.facts(&model.model).profile),
        }
    }

    fn count(&self, model: &ModelRef, text: &str) -> Count {
        match (self.inside(model), self.provider(model)) {
            (Some(inside), _) => inside.count(model, text),
            (None, Some(provider)) => provider.count(&model.model, text),
            (None, None) => Count::guess(text),
        }
    }
}

/// Asks all providers at once, because each may take its time.
async fn list(providers: &[Arc<Provider>]) -> Vec<Listed> {
    let mut asked = JoinSet::new();
    for (place, provider) in providers.iter().map(Arc::clone).enumerate() {
        asked.spawn(async move { (place, provider.models().await) });
    }
    let mut lists = asked.join_all().await;
    lists.sort_unstable_by_key(|(place, _)| *place);
    lists.into_iter().flat_map(|(_, models)| models).collect()
}

/// A call that came to nothing before it began.
struct Failed(Failure);

impl ModelStream for Failed {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}
