//! What the daemon is told: flags over environment over file over defaults.
//!
//! [`keys`] is the table of everything that can be set, [`layers`] puts the sources on top of each
//! other, and [`Options`] is the result with its words understood.

mod keys;
mod layers;
mod understood;

#[cfg(test)]
mod tests;

use std::io::Write as _;

use anyhow::Result;

use crate::cli::Flags;

pub(crate) use understood::{Options, Provider, Terminal};

/// Reads everything that says something.
pub(crate) fn read(flags: &Flags) -> Result<Options> {
    let layers = layers::gather(flags, &environment())?;
    Options::understand(&layers)
}

/// `quintet config`.
pub(crate) fn print(flags: &Flags) -> Result<()> {
    let layers = layers::gather(flags, &environment())?;
    Options::understand(&layers)?;
    std::io::stdout().write_all(layers.show().as_bytes())?;
    Ok(())
}

/// The one place where the environment is read.
pub(crate) fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
