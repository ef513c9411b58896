//! `quintet models`: lists models, and downloads local ones.

mod bar;
mod list;
mod pull;

use anyhow::Result;

use crate::cli::{Flags, Models};

/// Lists the models, or executes the subcommand.
pub(crate) fn main(verb: Option<Models>, flags: &Flags, all: bool) -> Result<()> {
    match verb {
        None => list::list(flags, all),
        Some(Models::Pull { flags, name }) => pull::fetch(&flags, name.as_deref()),
    }
}
