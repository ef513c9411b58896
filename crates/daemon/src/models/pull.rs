//! `quintet models pull`: fetches the weights of a model that runs here.

use std::io::Write as _;

use anyhow::{Result, bail};
use quintet_local::pull::{Places, pull};
use quintet_local::weights::{self, Weights};
use quintet_local::{PROVIDER, Settings};

use super::bar;
use crate::cli::Flags;
use crate::options::{self, Options};

pub(super) fn fetch(flags: &Flags, name: Option<&str>) -> Result<()> {
    let options = options::read(flags)?;
    let Some(weights) = wanted(&options, name)? else {
        let model = &options.default_model;
        writeln!(std::io::stdout(), "sessions use {model}, which needs nothing fetched")?;
        return Ok(());
    };
    let (settings, places) = (settings(&options)?, Places::of(&options::environment()));
    let bar = bar::Bar::new();
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pulled = threads.block_on(pull(weights, &settings.models_dir, &places, &bar));
    bar.end();
    pulled?;
    Ok(())
}

/// The weights that are asked for, or else those that sessions would use; nothing if they use none.
fn wanted(options: &Options, name: Option<&str>) -> Result<Option<&'static Weights>> {
    let name = match name {
        Some(name) => name,
        None if options.default_model.provider == PROVIDER => &options.default_model.model,
        None if options.unconfigured() => &weights::default().name,
        None => return Ok(None),
    };
    match weights::find(name) {
        Some(weights) => Ok(Some(weights)),
        None => {
            let known: Vec<&str> = weights::all().iter().map(|row| row.name.as_str()).collect();
            bail!("there is no local model {name:?}; there are {}", known.join(" and "))
        }
    }
}

fn settings(options: &Options) -> Result<Settings> {
    match options.local.clone() {
        Some(settings) => Ok(settings),
        None => bail!("providers.local of the configuration is another provider"),
    }
}
