//! The models of this machine next to those of providers, and `quintet models`.

mod bar;
mod joined;

use std::io::Write as _;

use anyhow::{Result, bail};
use quintet_local::pull::{Places, pull};
use quintet_local::weights::{self, Weights};
use quintet_local::{PROVIDER, Settings};

use crate::cli::{Flags, Models};
use crate::options::{self, Options};

pub(crate) use joined::Joined;

/// `quintet models`.
pub(crate) fn main(verb: Models) -> Result<()> {
    match verb {
        Models::List(flags) => list(&flags),
        Models::Pull { flags, name } => fetch(&flags, name.as_deref()),
    }
}

fn list(flags: &Flags) -> Result<()> {
    let settings = settings(&options::read(flags)?)?;
    let mut stdout = std::io::stdout().lock();
    for weights in weights::all() {
        let here = settings.models_dir.join(weights.file()).is_file();
        let here = if here { "here" } else { "not here" };
        let (name, megabytes) = (&weights.name, weights.size / 1_000_000);
        writeln!(stdout, "{name:<20} {megabytes:>5} MB  {here:<9} {}", weights.title)?;
    }
    Ok(())
}

fn fetch(flags: &Flags, name: Option<&str>) -> Result<()> {
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
