//! The sources of the key of a provider or of a search engine: its section, the environment, the
//! keyring.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use quintet_providers::{Secret, Vendor, vendors};

use super::{Layers, local, providers, search};

/// Information about the keys of providers, without the keys.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The source of each provider's key, if it has one.
    pub(crate) sources: BTreeMap<String, String>,
    /// The names whose keys are in the keyring.
    pub(crate) in_keyring: Vec<String>,
    /// Keys that are missing in the keyring, each with a remedy.
    pub(crate) warnings: Vec<(String, &'static str)>,
}

/// A key and its source.
pub(super) struct Credential {
    pub(super) secret: Secret,
    pub(super) source: String,
}

pub(super) fn keys(layers: &Layers) -> Result<Keys> {
    let mut sources = BTreeMap::new();
    for (name, vendor) in all_providers(layers) {
        if let Some(key) = find(layers, &name, vendor)? {
            sources.insert(name, key.source);
        }
    }
    let (in_keyring, warnings) = (layers.keyring.names(), layers.keyring.warnings());
    Ok(Keys { sources, in_keyring, warnings })
}

/// The key of a provider. The provider's section comes first and excludes the others; then the vendor's
/// variable, then the keyring.
pub(super) fn find(
    layers: &Layers,
    name: &str,
    vendor: Option<&Vendor>,
) -> Result<Option<Credential>> {
    if let Some(key) = configured_key(layers, &section(name))? {
        return Ok(Some(key));
    }
    let kept = |name: &str| in_keyring(layers, name);
    Ok(match layers.flag(&keyring_path(&section(name))) {
        Some(true) => kept(name),
        Some(false) => in_environment(layers, vendor),
        None => {
            in_environment(layers, vendor).or_else(|| kept(name)).or_else(|| kept(&vendor?.name))
        }
    })
}

/// The names to look up in the keyring, given the recorded ones: of providers without another key, or whose
/// section requires the keyring.
pub(in crate::options) fn names_to_look_up(layers: &Layers, recorded: &[String]) -> Vec<String> {
    let mut names: Vec<String> = all_providers(layers)
        .filter_map(|(name, vendor)| match layers.flag(&keyring_path(&section(&name))) {
            // Another part reports an invalid section.
            _ if configured_key(layers, &section(&name)).is_ok_and(|key| key.is_some()) => None,
            Some(true) => Some(name),
            Some(false) => None,
            None if in_environment(layers, vendor).is_some() => None,
            None => {
                let shared = vendor.map(|vendor| vendor.name.clone());
                [Some(name), shared].into_iter().flatten().find(|name| recorded.contains(name))
            }
        })
        .chain(search::name_to_look_up(layers, recorded))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// All providers that may have a key.
fn all_providers(layers: &Layers) -> impl Iterator<Item = (String, Option<&'static Vendor>)> {
    let mut names = layers.names("providers");
    names.retain(|name| !local::is_local_section(layers, name));
    for vendor in vendors() {
        if !names.contains(&vendor.name) {
            names.push(vendor.name.clone());
        }
    }
    names.into_iter().map(|name| {
        let vendor = providers::row(layers, &name).ok().flatten();
        (name, vendor)
    })
}

fn section(name: &str) -> String {
    format!("providers.{name}")
}

pub(super) fn keyring_path(section: &str) -> String {
    format!("{section}.api_key_keyring")
}

/// The key that a section sets.
pub(super) fn configured_key(layers: &Layers, section: &str) -> Result<Option<Credential>> {
    let path = format!("{section}.api_key");
    if let Some(key) = layers.str(&path) {
        let source = layers.source(&path).into();
        return Ok(Some(Credential { secret: Secret::new(key), source }));
    }
    let path = format!("{section}.api_key_env");
    let Some(variable) = layers.str(&path) else { return Ok(None) };
    let key = layers.environment.get(variable);
    let key = key.with_context(|| {
        if is_name(variable) {
            format!("{path} names {variable}, which is not set")
        } else {
            format!("{path} must be the name of a variable that is set, not a key")
        }
    })?;
    Ok(Some(Credential { secret: Secret::new(key), source: variable.into() }))
}

/// True if a text looks like a variable's name and can be shown; a key that was entered by mistake does not.
fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn in_environment(layers: &Layers, vendor: Option<&Vendor>) -> Option<Credential> {
    vendor?.key_variables.iter().find_map(|name| in_variable(layers, name))
}

pub(super) fn in_variable(layers: &Layers, name: &str) -> Option<Credential> {
    let key = providers::variable(layers, name)?;
    Some(Credential { secret: Secret::new(key), source: name.into() })
}

pub(super) fn in_keyring(layers: &Layers, name: &str) -> Option<Credential> {
    let secret = layers.keyring.key(name)?.clone();
    Some(Credential { secret, source: format!("keyring ({name})") })
}

#[cfg(test)]
mod tests;
