//! One provider: its configuration, its models and the calls to them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::{
    Failure, FailureKind, ModelDetails, ModelInfo, ModelLocation, ModelRef, Price, Profile, Prompt,
    SearchSupport, TokenCount,
};
use quintet_kernel::port::ModelStream;

use crate::accounts::KeySource;
use crate::breaker::Breaker;
use crate::call::Call;
use crate::config::ProviderConfig;
use crate::endpoint::Endpoint;
use crate::facts::{Facts, all_media};
use crate::http::Http;
use crate::model_list_cache::{ModelListCache, Reachability};
use crate::tools_cache::ToolsCache;
use crate::vendor::Vendor;
use crate::{catalogue, demo, family, inputs};

/// One provider.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) config: Arc<ProviderConfig>,
    /// `None` for the demo model.
    remote: Option<Remote>,
}

#[derive(Debug)]
struct Remote {
    endpoint: Arc<Endpoint>,
    list_cache: ModelListCache,
}

impl Provider {
    pub(crate) fn new(config: ProviderConfig, http: &Arc<Http>) -> Self {
        let config = Arc::new(config);
        let remote = family::of(config.api).map(|family| {
            let (config, http) = (Arc::clone(&config), Arc::clone(http));
            let (tools_cache, breaker) = (ToolsCache::default(), Breaker::default());
            let endpoint = Arc::new(Endpoint { config, family, http, tools_cache, breaker });
            Remote { endpoint, list_cache: ModelListCache::default() }
        });
        Self { config, remote }
    }

    /// Starts a call to one of its models. `demo_interval` is the wait between words of the demo model,
    /// `max_retry_wait` bounds the wait between tries of the others. Fails if the call cannot be made.
    pub(crate) fn stream(
        &self,
        mut prompt: Prompt,
        (demo_interval, max_retry_wait): (Duration, Duration),
        key_source: Option<KeySource>,
    ) -> Result<Box<dyn ModelStream>, Failure> {
        // The key of a user's account is looked up when it is needed.
        if self.lacks_key() && key_source.is_none() {
            return Err(no_key(&self.config));
        }
        let facts = self.facts(&prompt.model.model);
        match &self.remote {
            Some(remote) => {
                let call = Call::new(&remote.endpoint, prompt, &facts, key_source)?;
                Ok(Box::new(call.with_max_retry_wait(max_retry_wait)))
            }
            None => {
                inputs::fit(&mut prompt, &facts.profile, |_, _| true)?;
                Ok(Box::new(demo::DemoStream::new(&prompt, demo_interval)))
            }
        }
    }

    /// The price of a model, if the catalogue has it.
    pub(crate) fn price(&self, model: &str) -> Option<Price> {
        catalogue::find(&self.config.vendor, model)?.price()
    }

    /// The properties of a model: from the configuration, else the catalogue, else the provider's own list.
    pub(crate) fn facts(&self, model: &str) -> Facts {
        let entry = catalogue::find(&self.config.vendor, model);
        let found = self.remote.as_ref().and_then(|remote| remote.list_cache.find(model));
        let listed = found.as_ref().and_then(|found| found.context_window);
        let overrides = &self.config.overrides;
        let usual = || if self.remote.is_some() { all_media() } else { Vec::new() };
        let known = entry.map(catalogue::Entry::inputs);
        let profile = Profile {
            inputs: overrides.inputs.clone().or(known).unwrap_or_else(usual),
            tools: overrides.tools.or(entry.map(|entry| entry.tools)).unwrap_or(true),
            context_window: overrides
                .context_window
                .or(entry.map(|entry| entry.context_window))
                .or(listed),
            search: self.searches(entry),
        };
        let max_output = entry.and_then(|entry| entry.max_output);
        Facts {
            max_output: max_output.or(found.and_then(|found| found.max_output)),
            thinking: entry.map(catalogue::Entry::thinking).unwrap_or_default(),
            efforts: entry.map(catalogue::Entry::efforts).unwrap_or_default(),
            ..Facts::unknown(profile)
        }
    }

    /// Whether the provider searches the web for a model. Only if the catalogue states it: another
    /// model might reject every request, and searches cost money.
    fn searches(&self, entry: Option<&catalogue::Entry>) -> SearchSupport {
        let can = entry.is_some_and(|entry| entry.web_search);
        let family = family::of(self.config.api).filter(|_| can);
        match family.map_or(SearchSupport::Never, |family| family.searches()) {
            SearchSupport::Never => SearchSupport::Never,
            _ if !self.config.native_search => SearchSupport::Off,
            able => able,
        }
    }

    /// Counts the tokens of a text for a model.
    pub(crate) fn count(&self, model: &str, text: &str) -> TokenCount {
        let entry = catalogue::find(&self.config.vendor, model);
        match entry.and_then(catalogue::Entry::tokenizer) {
            Some(tokenizer) => tokenizer.count(text),
            None => TokenCount::guess(text),
        }
    }

    /// The configured models, then those that the provider lists or, without a list, those of the
    /// catalogue.
    pub(crate) async fn models(&self) -> Vec<ModelInfo> {
        let (names, usable) = match &self.remote {
            None => (vec![demo::MODEL.to_owned()], true),
            Some(_) if self.lacks_key() => (self.catalogue_models(), false),
            Some(remote) => {
                let cached = remote.list_cache.refresh(&remote.endpoint).await;
                let usable = match cached.reachability {
                    Reachability::Reachable => true,
                    Reachability::KeyRefused => false,
                    // The internet may be slow; a local server answers quickly or is not running.
                    Reachability::Unreachable => self.config.side == ModelLocation::Online,
                };
                if cached.models.is_empty() {
                    (self.catalogue_models(), usable)
                } else {
                    (cached.models.iter().map(|found| found.id.clone()).collect(), usable)
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

    fn catalogue_models(&self) -> Vec<String> {
        catalogue::of(&self.config.vendor).map(|entry| entry.id.clone()).collect()
    }

    fn listed(&self, name: String, usable: bool) -> ModelInfo {
        let known = catalogue::find(&self.config.vendor, &name);
        let found = self.remote.as_ref().and_then(|remote| remote.list_cache.find(&name));
        let label = found.and_then(|found| found.label).unwrap_or_else(|| name.clone());
        let about = known.map_or_else(
            || ModelDetails { label, ..ModelDetails::default() },
            |entry| entry.about(),
        );
        let facts = self.facts(&name);
        ModelInfo {
            model: ModelRef { provider: self.config.name.clone(), model: name },
            about: ModelDetails {
                side: self.config.side,
                max_output: about.max_output.or(facts.max_output),
                ..about
            },
            profile: facts.profile,
            usable,
        }
    }
}

/// The failure of a call to a provider whose key is not configured.
pub(crate) fn no_key(config: &ProviderConfig) -> Failure {
    let name = &config.name;
    let vendor = Vendor::named(&config.vendor);
    let variables = vendor.map(|vendor| vendor.key_variables.as_slice()).unwrap_or_default();
    let option = format!("providers.{name}.api_key");
    let places: Vec<&str> = variables.iter().map(String::as_str).chain([&*option]).collect();
    let places = places.join(" or ");
    let message =
        format!("there is no key for {name}: set {places}, or run `quintet keys set {name}`");
    Failure { kind: FailureKind::Unauthorized, message }
}
