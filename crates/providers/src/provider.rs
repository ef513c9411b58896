//! One provider: what it is, what it offers, and how it is asked.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::{
    About, Count, Failure, FailureKind, Listed, ModelRef, Profile, Prompt, Searches, Side,
};
use quintet_kernel::port::ModelStream;

use crate::accounts::Payer;
use crate::breaker::Breaker;
use crate::call::Call;
use crate::config::ProviderConfig;
use crate::endpoint::Endpoint;
use crate::facts::{Facts, all_media};
use crate::http::Http;
use crate::listing::{Answered, Listing};
use crate::offer::Offer;
use crate::vendor::Vendor;
use crate::{catalogue, demo, family, inputs};

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
            let (offer, breaker) = (Offer::default(), Breaker::default());
            let endpoint = Arc::new(Endpoint { config, family, http, offer, breaker });
            Remote { endpoint, listing: Listing::default() }
        });
        Self { config, remote }
    }

    /// Asks a model of it; the demo takes its pace, the others so much patience between two tries.
    pub(crate) fn stream(
        &self,
        mut prompt: Prompt,
        (demo_pace, patience): (Duration, Duration),
        payer: Option<Payer>,
    ) -> Result<Box<dyn ModelStream>, Failure> {
        // Whether somebody else has a key is known when it is needed.
        if self.lacks_key() && payer.is_none() {
            return Err(no_key(&self.config));
        }
        let facts = self.facts(&prompt.model.model);
        match &self.remote {
            Some(remote) => {
                let call = Call::new(&remote.endpoint, prompt, &facts, payer)?;
                Ok(Box::new(call.with_patience(patience)))
            }
            None => {
                inputs::fit(&mut prompt, &facts.profile, |_, _| true)?;
                Ok(Box::new(demo::Talk::new(&prompt, demo_pace)))
            }
        }
    }

    /// What is known of a model of it: what somebody said, then what is written in the catalogue, then
    /// what the provider said itself when it was last asked.
    pub(crate) fn facts(&self, model: &str) -> Facts {
        let entry = catalogue::find(&self.config.vendor, model);
        let found = self.remote.as_ref().and_then(|remote| remote.listing.find(model));
        let listed = found.as_ref().and_then(|found| found.context_window);
        let stated = &self.config.stated;
        let usual = || if self.remote.is_some() { all_media() } else { Vec::new() };
        let known = entry.map(catalogue::Entry::inputs);
        let profile = Profile {
            inputs: stated.inputs.clone().or(known).unwrap_or_else(usual),
            tools: stated.tools.or(entry.map(|entry| entry.tools)).unwrap_or(true),
            context_window: stated
                .context_window
                .or(entry.map(|entry| entry.context_window))
                .or(listed),
            search: self.searches(entry),
        };
        let written = entry.and_then(|entry| entry.max_output);
        Facts {
            max_output: written.or(found.and_then(|found| found.max_output)),
            thinking: entry.map(catalogue::Entry::thinking).unwrap_or_default(),
            efforts: entry.map(catalogue::Entry::efforts).unwrap_or_default(),
            ..Facts::unknown(profile)
        }
    }

    /// Whether it searches the web for a model. The catalogue says so, else it does not: a model that
    /// cannot might refuse everything, and searches cost.
    fn searches(&self, entry: Option<&catalogue::Entry>) -> Searches {
        let can = entry.is_some_and(|entry| entry.web_search);
        let family = family::of(self.config.api).filter(|_| can);
        match family.map_or(Searches::Never, |family| family.searches()) {
            Searches::Never => Searches::Never,
            _ if !self.config.native_search => Searches::Off,
            able => able,
        }
    }

    /// How many tokens a text is to a model of it.
    pub(crate) fn count(&self, model: &str, text: &str) -> Count {
        let entry = catalogue::find(&self.config.vendor, model);
        match entry.and_then(catalogue::Entry::tokenizer) {
            Some(tokenizer) => tokenizer.count(text),
            None => Count::guess(text),
        }
    }

    /// The configured models, then those that the provider lists itself, or, where it does not, those
    /// of the catalogue.
    pub(crate) async fn models(&self) -> Vec<Listed> {
        let (names, usable) = match &self.remote {
            None => (vec![demo::MODEL.to_owned()], true),
            Some(_) if self.lacks_key() => (self.written(), false),
            Some(remote) => {
                let heard = remote.listing.ask(&remote.endpoint).await;
                let usable = match heard.answered {
                    Answered::Yes => true,
                    Answered::Denied => false,
                    // The internet may be slow; what runs here answers at once or is not there.
                    Answered::No => self.config.side == Side::Online,
                };
                match heard.models.is_empty() {
                    true => (self.written(), usable),
                    false => (heard.models.iter().map(|found| found.id.clone()).collect(), usable),
                }
            }
        };
        let shown = |name: &String| !self.config.hide.iter().any(|word| name.contains(word));
        let mut seen = HashSet::new();
        let offered = names.into_iter().filter(shown);
        let all = self.config.models.iter().cloned().chain(offered);
        all.filter(|name| seen.insert(name.clone())).map(|name| self.listed(name, usable)).collect()
    }

    fn lacks_key(&self) -> bool {
        self.config.needs_key && self.config.api_key.is_none()
    }

    fn written(&self) -> Vec<String> {
        catalogue::of(&self.config.vendor).map(|entry| entry.id.clone()).collect()
    }

    fn listed(&self, name: String, usable: bool) -> Listed {
        let known = catalogue::find(&self.config.vendor, &name);
        let found = self.remote.as_ref().and_then(|remote| remote.listing.find(&name));
        let label = found.and_then(|found| found.label).unwrap_or_else(|| name.clone());
        let about =
            known.map_or_else(|| About { label, ..About::default() }, |entry| entry.about());
        let facts = self.facts(&name);
        Listed {
            model: ModelRef { provider: self.config.name.clone(), model: name },
            about: About {
                side: self.config.side,
                max_output: about.max_output.or(facts.max_output),
                ..about
            },
            profile: facts.profile,
            usable,
        }
    }
}

/// Nothing is sent that cannot be answered.
pub(crate) fn no_key(config: &ProviderConfig) -> Failure {
    let name = &config.name;
    let vendor = Vendor::named(&config.vendor);
    let variables = vendor.map(|vendor| vendor.key_variables.join(" or ")).unwrap_or_default();
    let message =
        format!("there is no key for {name}: set {variables} or providers.{name}.api_key");
    Failure { kind: FailureKind::Unauthorized, message }
}
