//! What the daemon is told: flags over environment over file over defaults.
//!
//! [`keys`] is the table of everything that can be set, [`layers`] puts the sources on top of each
//! other, and [`Options`] is the result with its words understood.

mod keys;
mod layers;
mod listeners;
mod understood;

#[cfg(test)]
mod tests;

use std::io::Write as _;

use anyhow::Result;

use crate::cli::Flags;
use crate::keyring::{self, Names};
use layers::Layers;

pub(crate) use listeners::{Listener, Place};
pub(crate) use understood::{
    Auth, EmbeddingSource, Memory, Options, Provider, SEARCH, VoiceSource,
};

/// Reads everything that says something.
pub(crate) fn read(flags: &Flags) -> Result<Options> {
    Options::understand(&gather(flags)?)
}

/// Reads everything but the keyring.
pub(crate) fn read_closed(flags: &Flags) -> Result<Options> {
    Options::understand(&layers::gather(flags, &environment())?)
}

fn gather(flags: &Flags) -> Result<Layers> {
    let mut layers = layers::gather(flags, &environment())?;
    // A home that cannot be read has no names for us, which is no reason not to start.
    let names = Names::of(|name| layers.environment.get(name)).read().unwrap_or_default();
    layers.keyring = keyring::look_up(&understood::wanted_keys(&layers, &names));
    Ok(layers)
}

/// `quintet config`.
pub(crate) fn print(flags: &Flags) -> Result<()> {
    let layers = gather(flags)?;
    let options = Options::understand(&layers)?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(layers.show(&options.key_sources()).as_bytes())?;
    for (what, mend) in options.complaints() {
        writeln!(stdout, "# {what}; {mend}")?;
    }
    Ok(())
}

/// The one place where the environment is read.
pub(crate) fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
