//! The options of the daemon: flags over environment over file over defaults.
//!
//! [`keys`] is the table of all configuration keys, [`layers`] merges the sources, and [`Options`]
//! is the parsed result.

mod keys;
mod layers;
mod listeners;
mod parsed;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;

use crate::cli::Flags;
use crate::keyring::{self, Names};
use layers::Layers;

pub(crate) use listeners::{ListenAddress, Listener};
pub(crate) use parsed::{
    Auth, EmbeddingSource, Memory, OAuth, Options, Provider, SEARCH, TranscriptionSource,
    VoiceSource,
};

/// Reads the options from flags, environment and file.
pub(crate) fn read(flags: &Flags) -> Result<Options> {
    Options::parse(&load(flags)?)
}

/// Reads everything except the keyring.
pub(crate) fn read_closed(flags: &Flags) -> Result<Options> {
    Options::parse(&layers::load(flags, &environment())?)
}

fn load(flags: &Flags) -> Result<Layers> {
    let mut layers = layers::load(flags, &environment())?;
    // If the home directory cannot be read, the daemon starts without recorded names.
    let names = Names::of(|name| layers.environment.get(name)).read().unwrap_or_default();
    layers.keyring = keyring::look_up(&parsed::keys_to_look_up(&layers, &names));
    Ok(layers)
}

/// `quintet config`.
pub(crate) fn print(flags: &Flags) -> Result<()> {
    Ok(std::io::stdout().lock().write_all(shown(flags)?.as_bytes())?)
}

/// Every setting and its source, without secrets.
pub(crate) fn shown(flags: &Flags) -> Result<String> {
    let layers = load(flags)?;
    let options = Options::parse(&layers)?;
    let mut text = layers.show(&options.key_sources());
    for (what, remedy) in options.warnings() {
        writeln!(text, "# {what}; {remedy}")?;
    }
    Ok(text)
}

/// The only place that reads the environment.
pub(crate) fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
