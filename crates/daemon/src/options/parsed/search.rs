//! The options of web search.

use anyhow::{Result, bail};
use quintet_providers::Secret;
use quintet_tools::{SearchApi, SearchEngine};

use super::credentials::{self, Credential};
use crate::options::layers::Layers;

/// The section, and the name of its key in the keyring.
pub(crate) const SEARCH: &str = "search";
/// The variable that Brave's own examples use.
const BRAVE_VARIABLE: &str = "BRAVE_API_KEY";

/// The web search that models use.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The search engine of `web_search`, if there is one.
    pub(crate) engine: Option<SearchEngine>,
    /// The key of the engine.
    pub(crate) key: Option<Secret>,
    /// The source of the key.
    pub(crate) source: Option<String>,
    /// What is missing, with a remedy.
    pub(crate) warning: Option<(String, &'static str)>,
}

pub(super) fn parse(layers: &Layers) -> Result<Search> {
    let Some(api) = api(layers)? else { return Ok(Search::default()) };
    let (key, source) = match key(layers, api)? {
        Some(Credential { secret, source }) => (Some(secret), Some(source)),
        None => (None, None),
    };
    // The key may be in a locked keyring, so the daemon starts without it.
    if api.needs_key() && key.is_none() {
        let what = format!("web_search is off: there is no key for {}", name(api));
        let remedy = "set search.api_key or search.api_key_env, or `quintet keys set search`";
        return Ok(Search { warning: Some((what, remedy)), ..Search::default() });
    }
    let engine = Some(engine(layers, api, key.as_ref())?);
    Ok(Search { engine, key, source, warning: None })
}

fn engine(layers: &Layers, api: SearchApi, key: Option<&Secret>) -> Result<SearchEngine> {
    let path = "search.base_url";
    let configured_key = layers.str(path).filter(|url| !url.is_empty());
    let Some(url) = configured_key.or(api.usual_url()) else {
        bail!("{path} is not set, and {} has no usual one", name(api));
    };
    let engine = SearchEngine::new(api, url, key.map(Secret::reveal));
    engine.map_err(|why| anyhow::anyhow!("{path}: {why} ({})", layers.source(path)))
}

fn api(layers: &Layers) -> Result<Option<SearchApi>> {
    let path = "search.api";
    let Some(word) = layers.str(path).filter(|word| !word.is_empty()) else { return Ok(None) };
    match SearchApi::ALL.into_iter().find(|(name, _)| *name == word) {
        Some((_, api)) => Ok(Some(api)),
        None => {
            let known = SearchApi::ALL.map(|(name, _)| name);
            bail!("{path} must be one of {known:?}, not {word:?} ({})", layers.source(path))
        }
    }
}

fn name(api: SearchApi) -> &'static str {
    SearchApi::ALL.into_iter().find(|(_, known)| *known == api).map_or("", |(name, _)| name)
}

/// Like those of providers: from the section, else the variable, else the keyring.
fn key(layers: &Layers, api: SearchApi) -> Result<Option<Credential>> {
    if let Some(key) = credentials::configured_key(layers, SEARCH)? {
        return Ok(Some(key));
    }
    let kept = || credentials::in_keyring(layers, SEARCH).filter(|_| !taken(layers));
    Ok(match layers.flag(&credentials::keyring_path(SEARCH)) {
        Some(true) => kept(),
        Some(false) => variable(layers, api),
        None => variable(layers, api).or_else(kept),
    })
}

fn variable(layers: &Layers, api: SearchApi) -> Option<Credential> {
    (api == SearchApi::Brave).then(|| credentials::in_variable(layers, BRAVE_VARIABLE)).flatten()
}

/// True if a provider has this name in the keyring, so that the key there is not the search engine's.
fn taken(layers: &Layers) -> bool {
    layers.names("providers").iter().any(|name| name == SEARCH)
}

/// The name to look up in the keyring, if the key may be there.
pub(super) fn name_to_look_up(layers: &Layers, recorded: &[String]) -> Option<String> {
    let api = api(layers).ok().flatten().filter(|_| !taken(layers))?;
    let configured_key = credentials::configured_key(layers, SEARCH).is_ok_and(|key| key.is_some());
    let looked = match layers.flag(&credentials::keyring_path(SEARCH)) {
        Some(flag) => flag,
        None => variable(layers, api).is_none() && recorded.iter().any(|name| name == SEARCH),
    };
    (looked && !configured_key).then(|| SEARCH.into())
}

#[cfg(test)]
mod tests;
