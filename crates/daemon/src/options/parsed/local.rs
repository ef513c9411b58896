//! The options of local models.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use quintet_kernel::model::ModelRef;
use quintet_local::{PROVIDER, Settings, weights};

use super::{Layers, Provider};

/// `None` if a configured provider has the name.
pub(super) fn parse(layers: &Layers, providers: &[Provider]) -> Result<Option<Settings>> {
    if providers.iter().any(|provider| provider.name == PROVIDER) {
        return Ok(None);
    }
    let small = |path: &str| layers.number(path).and_then(|number| u32::try_from(number).ok());
    let window = small("local.context").unwrap_or(u32::MAX);
    if window < 512 {
        bail!("local.context must be 512 or more ({})", layers.source("local.context"));
    }
    Ok(Some(Settings {
        models_dir: models_dir(layers)?,
        window,
        idle: Duration::from_secs(layers.number("local.idle_seconds").unwrap_or(600)),
        threads: small("local.threads").filter(|threads| *threads > 0),
    }))
}

/// True if a section `[providers.local]` means these models and not a server.
pub(super) fn is_local_section(layers: &Layers, name: &str) -> bool {
    name == PROVIDER && layers.str(&format!("providers.{name}.api")) == Some("local")
}

/// The default model if none is configured and its weights are downloaded.
pub(super) fn ready(settings: &Settings) -> Option<ModelRef> {
    let weights = weights::default();
    let there = settings.models_dir.join(&weights.file.name).is_file();
    there.then(|| ModelRef { provider: PROVIDER.into(), model: weights.name.clone() })
}

/// Weights are large and do not depend on the project, so they are in the user's cache.
pub(super) fn models_dir(layers: &Layers) -> Result<PathBuf> {
    if let Some(dir) = layers.str("local.models_dir") {
        return Ok(dir.into());
    }
    let variable = |name: &str| layers.environment.get(name).filter(|value| !value.is_empty());
    let dir = match (variable("XDG_CACHE_HOME"), variable("HOME")) {
        (Some(cache), _) => PathBuf::from(cache).join("quintet/models"),
        (None, Some(home)) => PathBuf::from(home).join(".cache/quintet/models"),
        (None, None) => super::data_dir(layers)?.join("models"),
    };
    std::path::absolute(dir).context("local.models_dir")
}
