//! `quintet models`: lists what can be asked, and fetches what runs here.

mod bar;
mod list;
mod pull;

use anyhow::Result;

use crate::cli::{Flags, Models};

/// Lists the models, or does what the verb says.
pub(crate) fn main(verb: Option<Models>, flags: &Flags, all: bool) -> Result<()> {
    match verb {
        None => list::list(flags, all),
        Some(Models::Pull { flags, name }) => pull::fetch(&flags, name.as_deref()),
    }
}
