//! One provider: what it is, what it offers, and how it is asked.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::{About, Failure, Listed, ModelRef, Prompt};
use quintet_kernel::port::ModelStream;

use crate::call::Call;
use crate::config::ProviderConfig;
use crate::endpoint::Endpoint;
use crate::facts::Facts;
use crate::http::Http;
use crate::listing::{Found, Listing};
use crate::offer::Offer;
use crate::{demo, family, inputs};

/// One provider.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) config: Arc<ProviderConfig>,
    /// Nothing for the model inside the daemon.
    remote: Option<Remote>,
}

#[derive(Debug)]
struct Remote {
    endpoint: Arc<Endpoint>,
    listing: Listing,
}

impl Provider {
    pub(crate) fn new(config: ProviderConfig, http: &Arc<Http>) -> Self {
        let config = Arc::new(config);
        let remote = family::of(config.api).map(|family| {
            let (config, http) = (Arc::clone(&config), Arc::clone(http));
            let endpoint = Arc::new(Endpoint { config, family, http, offer: Offer::default() });
            Remote { endpoint, listing: Listing::default() }
        });
        Self { config, remote }
    }

    /// Asks a model of it.
    pub(crate) fn stream(
        &self,
        mut prompt: Prompt,
        demo_pace: Duration,
    ) -> Result<Box<dyn ModelStream>, Failure> {
        let facts = self.facts(&prompt.model.model);
        match &self.remote {
            Some(remote) => Ok(Box::new(Call::new(&remote.endpoint, prompt, &facts)?)),
            None => {
                inputs::fit(&mut prompt, &facts.profile, |_, _| true)?;
                Ok(Box::new(demo::Talk::new(&prompt, demo_pace)))
            }
        }
    }

    /// What is known of a model of it.
    pub(crate) fn facts(&self, _model: &str) -> Facts {
        Facts::unknown(self.config.profile.clone())
    }

    /// The configured models, then those that the provider lists itself.
    pub(crate) async fn models(&self) -> Vec<Listed> {
        let found: Arc<[Found]> = match &self.remote {
            Some(remote) => remote.listing.ask(&remote.endpoint).await.models,
            None if self.config.models.is_empty() => {
                Arc::from([Found { id: demo::MODEL.into(), ..Found::default() }])
            }
            None => Arc::default(),
        };
        let mut seen = HashSet::new();
        let names = self.config.models.iter().chain(found.iter().map(|found| &found.id));
        let names = names.filter(|name| seen.insert(*name));
        let listed = |name: &String| Listed {
            model: ModelRef { provider: self.config.name.clone(), model: name.clone() },
            profile: self.facts(name).profile,
            about: About { label: name.clone(), ..About::default() },
            usable: true,
        };
        names.map(listed).collect()
    }
}
