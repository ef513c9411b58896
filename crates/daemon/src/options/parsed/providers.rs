//! The providers: the known vendors with the changes of the configuration, and those that only the
//! configuration defines.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{ModelLocation, ModelRef};
use quintet_providers::{Api, EffortStyle, ProviderConfig, Vendor, vendors};

use super::{Provider, credentials, local};
use crate::options::layers::Layers;

/// The configured providers, then all other vendors, then the demo.
pub(super) fn parse(layers: &Layers) -> Result<Vec<Provider>> {
    let names = layers.names("providers");
    let mut providers = names
        .iter()
        .filter(|name| !local::is_local_section(layers, name))
        .map(|name| configured(layers, name))
        .collect::<Result<Vec<_>>>()?;
    for vendor in vendors() {
        if !names.contains(&vendor.name) {
            providers.push(found(layers, vendor)?);
        }
    }
    if !names.iter().any(|name| name == "demo") {
        providers.push(ProviderConfig::new("demo", Api::Demo));
    }
    let search = layers.flag("search.native").unwrap_or(false);
    providers.iter_mut().for_each(|provider| provider.native_search = search);
    Ok(providers)
}

/// A provider without a section, whose key is in the environment or the keyring.
fn found(layers: &Layers, vendor: &Vendor) -> Result<Provider> {
    let api_key = credentials::find(layers, &vendor.name, Some(vendor))?;
    Ok(Provider { api_key: api_key.map(|key| key.secret), ..at_configured_address(layers, vendor) })
}

/// A vendor at the address from the environment.
fn at_configured_address(layers: &Layers, vendor: &Vendor) -> Provider {
    let moved = vendor.url_variable.as_ref().and_then(|name| variable(layers, name));
    match moved {
        Some(url) => vendor.provider_at(url),
        None => vendor.provider(),
    }
}

pub(super) fn variable<'a>(layers: &'a Layers, name: &str) -> Option<&'a String> {
    layers.environment.get(name).filter(|value| !value.is_empty())
}

fn configured(layers: &Layers, name: &str) -> Result<Provider> {
    let path = |field: &str| format!("providers.{name}.{field}");
    let base_url = layers.str(&path("base_url")).map(|url| url.trim_end_matches('/').to_owned());
    let vendor = row(layers, name)?;
    let mut provider = match (vendor, &base_url) {
        (Some(vendor), Some(url)) => vendor.provider_at(url),
        (Some(vendor), None) => at_configured_address(layers, vendor),
        (None, _) => unknown(layers, name, base_url.as_deref())?,
    };
    provider.name = name.into();
    if let Some(api) = api(layers, &path("api"))? {
        provider.api = api;
    }
    provider.api_key = credentials::find(layers, name, vendor)?.map(|key| key.secret);
    apply_section(layers, name, &mut provider)?;
    Ok(provider)
}

/// The vendor of a section, by `vendor` or by the section's name.
pub(super) fn row(layers: &Layers, name: &str) -> Result<Option<&'static Vendor>> {
    let path = format!("providers.{name}.vendor");
    let Some(named) = layers.str(&path) else { return Ok(Vendor::named(name)) };
    let known = || vendors().iter().map(|vendor| vendor.name.as_str()).collect::<Vec<_>>();
    let row = Vendor::named(named);
    let row = row.with_context(|| format!("{path}: {named:?} is not one of {:?}", known()))?;
    Ok(Some(row))
}

fn unknown(layers: &Layers, name: &str, base_url: Option<&str>) -> Result<Provider> {
    let path = format!("providers.{name}.api");
    let api = api(layers, &path)?.with_context(|| format!("{path} is not set"))?;
    let mut provider = ProviderConfig::new(name, api);
    if api != Api::Demo {
        let url = base_url.filter(|url| !url.is_empty());
        provider.base_url =
            url.with_context(|| format!("providers.{name}.base_url is not set"))?.into();
        let near = ["://127.", "://localhost", "://[::1]"];
        let local = near.iter().any(|host| provider.base_url.contains(host));
        provider.side = if local { ModelLocation::Local } else { ModelLocation::Online };
    }
    Ok(provider)
}

fn api(layers: &Layers, path: &str) -> Result<Option<Api>> {
    let Some(word) = layers.str(path) else { return Ok(None) };
    if let Some(api) = Api::parse(word) {
        return Ok(Some(api));
    }
    let known = Api::ALL.map(Api::name).join(", ");
    bail!("{path}: this version does not speak {word:?}; it speaks {known}")
}

/// Applies the other settings of a section.
fn apply_section(layers: &Layers, name: &str, provider: &mut Provider) -> Result<()> {
    let path = |field: &str| format!("providers.{name}.{field}");
    provider.models = layers.list(&path("models")).unwrap_or_default();
    provider.overrides.inputs = inputs(layers, &path("inputs"))?;
    provider.overrides.tools = layers.flag(&path("tools"));
    provider.overrides.context_window = layers.number(&path("context_window"));
    if let Some(tries) = layers.number(&path("retries")) {
        provider.retries.max_retries = u32::try_from(tries).unwrap_or(u32::MAX);
    }
    if let Some(seconds) = layers.number(&path("idle_timeout_seconds")) {
        provider.timeouts.idle = Duration::from_secs(seconds);
    }
    if let Some(seconds) = layers.number(&path("total_timeout_seconds")) {
        provider.timeouts.total = Duration::from_secs(seconds);
    }
    let quirks = &mut provider.quirks;
    let set = |field: &str, quirk: &mut bool| *quirk = layers.flag(&path(field)).unwrap_or(*quirk);
    set("max_completion_tokens", &mut quirks.max_completion_tokens);
    set("stream_options", &mut quirks.stream_options);
    set("thoughts_back", &mut quirks.thoughts_back);
    set("short_ids", &mut quirks.short_ids);
    if let Some(word) = layers.str(&path("effort")) {
        let style = EffortStyle::parse(word);
        quirks.effort = style.with_context(|| {
            format!("{} must be word, object, switch or none, not {word:?}", path("effort"))
        })?;
    }
    for header in layers.list(&path("headers")).unwrap_or_default() {
        let pair = header.split_once(':');
        let (header, value) = pair
            .with_context(|| format!("{}: {header:?} is not \"name: value\"", path("headers")))?;
        quirks.headers.push((header.trim().into(), value.trim().into()));
    }
    Ok(())
}

fn inputs(layers: &Layers, path: &str) -> Result<Option<Vec<MediaKind>>> {
    let Some(words) = layers.list(path) else { return Ok(None) };
    let media = [MediaKind::Image, MediaKind::Audio, MediaKind::File];
    let kind = |word: &String| {
        media.into_iter().find(|kind| kind.name() == word).with_context(|| {
            format!("{path}: there is no input {word:?}; there are text, image, audio and file")
        })
    };
    words.iter().filter(|word| *word != "text").map(kind).collect::<Result<_>>().map(Some)
}

/// The model for sessions that name none, and a note about it for the user.
pub(super) fn default_model(
    layers: &Layers,
    providers: &[Provider],
    local: Option<&quintet_local::Settings>,
) -> Result<(ModelRef, Vec<String>)> {
    let known = names(providers, local);
    if let Some(text) = layers.str("default_model") {
        return Ok((model(text, "default_model", &known)?, Vec::new()));
    }
    let named = providers.iter().find_map(|provider| {
        let ready = !provider.needs_key || provider.api_key.is_some();
        let own = provider.models.first().or(provider.default_model.as_ref());
        let model = own.filter(|_| ready)?.clone();
        Some(ModelRef { provider: provider.name.clone(), model })
    });
    Ok(match named.or_else(|| local::ready(local?)) {
        Some(model) => (model, Vec::new()),
        None => {
            let advice = "no model is configured, so sessions use the built-in demo model, which only follows a few rules; \
                fetch one that runs here with `quintet models pull`, set a key such as OPENAI_API_KEY or ANTHROPIC_API_KEY, \
                or default_model in the configuration file (`quintet models --all` lists what there is)";
            let demo = ModelRef { provider: "demo".into(), model: "demo".into() };
            (demo, vec![advice.into()])
        }
    })
}

/// The fallback models.
pub(super) fn fallback(
    layers: &Layers,
    providers: &[Provider],
    local: Option<&quintet_local::Settings>,
) -> Result<Vec<ModelRef>> {
    let known = names(providers, local);
    let models = layers.list("models.fallback").unwrap_or_default();
    models.iter().map(|name| model(name, "models.fallback", &known)).collect()
}

fn names<'a>(providers: &'a [Provider], local: Option<&quintet_local::Settings>) -> Vec<&'a str> {
    let names = providers.iter().map(|provider| provider.name.as_str());
    names.chain(local.map(|_| quintet_local::PROVIDER)).collect()
}

fn model(text: &str, path: &str, known: &[&str]) -> Result<ModelRef> {
    let model = ModelRef::parse(text)
        .with_context(|| format!("{path} must be provider/model, not {text:?}"))?;
    if !known.contains(&model.provider.as_str()) {
        bail!("{path} names the provider {:?}, and there are only {known:?}", model.provider);
    }
    Ok(model)
}
