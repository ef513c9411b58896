//! Models behind the kernel's port [`Models`]: families of model APIs, spoken over HTTP, and a
//! small model for demonstrations inside the daemon.
//!
//! A vendor that differs from a family only by its address is a row of [`ProviderConfig`].

mod config;
pub mod demo;
mod fault;
mod http;
mod inputs;
mod openai_chat;
mod retry;
mod sse;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::{About, Chunk, Failure, FailureKind, Listed, ModelRef, Prompt};
use quintet_kernel::port::{BoxFuture, ModelStream, Models};
use tokio::task::JoinSet;

pub use config::{Api, ProviderConfig, Retries, Secret, Timeouts};
use http::Http;
use openai_chat::{Call, Endpoint, Listing, Offer};

/// Every provider that is configured.
#[derive(Debug)]
pub struct Providers {
    providers: Vec<Arc<Provider>>,
    demo_pace: Duration,
}

#[derive(Debug)]
struct Provider {
    endpoint: Arc<Endpoint>,
    listing: Listing,
}

impl Providers {
    /// Takes the providers of the configuration. Cheap: nothing is read or connected yet.
    pub fn new(configs: Vec<ProviderConfig>) -> Self {
        let http = Arc::new(Http::default());
        let provider = |config| {
            let endpoint =
                Arc::new(Endpoint { config, http: Arc::clone(&http), offer: Offer::default() });
            Arc::new(Provider { endpoint, listing: Listing::default() })
        };
        Self { providers: configs.into_iter().map(provider).collect(), demo_pace: demo::PACE }
    }

    /// Has the demo model wait this long between words.
    #[must_use]
    pub fn with_demo_pace(self, demo_pace: Duration) -> Self {
        Self { demo_pace, ..self }
    }

    fn start(&self, prompt: &Prompt) -> Result<Box<dyn ModelStream>, Failure> {
        let wanted = &prompt.model.provider;
        let known = |provider: &&Arc<Provider>| provider.endpoint.config.name == *wanted;
        let provider = self.providers.iter().find(known).ok_or_else(|| Failure {
            kind: FailureKind::UnknownModel,
            message: format!("there is no provider {wanted:?}"),
        })?;
        inputs::check(prompt, &provider.endpoint.config.profile)?;
        Ok(match provider.endpoint.config.api {
            Api::OpenAiChat => Box::new(Call::new(&provider.endpoint, prompt)?),
            Api::Demo => Box::new(demo::Talk::new(prompt, self.demo_pace)),
        })
    }
}

impl Models for Providers {
    fn stream(&self, prompt: Prompt) -> Box<dyn ModelStream> {
        self.start(&prompt).unwrap_or_else(|failure| Box::new(Failed(failure)))
    }

    fn list(&self) -> BoxFuture<'_, Vec<Listed>> {
        Box::pin(list(&self.providers))
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

impl Provider {
    /// The configured models, then those that the provider lists itself.
    async fn models(&self) -> Vec<Listed> {
        let config = &self.endpoint.config;
        let listed = match config.api {
            Api::OpenAiChat => self.listing.names(&self.endpoint).await,
            Api::Demo if config.models.is_empty() => Arc::from([demo::MODEL.to_owned()]),
            Api::Demo => Arc::default(),
        };
        let mut seen = HashSet::new();
        let names = config.models.iter().chain(listed.iter()).filter(|name| seen.insert(*name));
        let listed = |name: &String| Listed {
            model: ModelRef { provider: config.name.clone(), model: name.clone() },
            profile: config.profile.clone(),
            about: About { label: name.clone(), ..About::default() },
            usable: true,
        };
        names.map(listed).collect()
    }
}

/// A call that came to nothing before it began.
struct Failed(Failure);

impl ModelStream for Failed {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}
