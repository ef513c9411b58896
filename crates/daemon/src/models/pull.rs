//! `quintet models pull`: downloads the weights of local models.

use std::io::Write as _;

use anyhow::{Result, bail};
use quintet_local::PROVIDER;
use quintet_local::weights as chat;
use quintet_senses::weights as senses;
use quintet_weights::{Model, Registries, pull};

use super::bar;
use crate::cli::Flags;
use crate::options::{self, Options};

pub(super) fn fetch(flags: &Flags, name: Option<&str>) -> Result<()> {
    let options = options::read(flags)?;
    let models = models_to_pull(&options, name)?;
    if models.is_empty() {
        let model = &options.default_model;
        let line = match name {
            Some(_) => "no sense of this configuration needs weights".into(),
            None => format!("sessions use {model}, which needs nothing fetched"),
        };
        writeln!(std::io::stdout(), "{line}")?;
        return Ok(());
    }
    let registries = Registries::new(&options::environment());
    let dir = &options.senses.settings.models_dir;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for model in models {
        let bar = bar::Bar::new();
        let pulled = threads.block_on(pull(model, dir, &registries, &bar));
        bar.end();
        pulled?;
    }
    Ok(())
}

/// The models of that name, or else the one that sessions would use; none if they use no local one.
fn models_to_pull(options: &Options, name: Option<&str>) -> Result<Vec<Model<'static>>> {
    let name = match name {
        Some(senses::ALL) => {
            let used = options.senses.weights();
            let rows = senses::all().iter().filter(|row| used.contains(&row.name.as_str()));
            return Ok(rows.map(senses::Weights::model).collect());
        }
        Some(name) => match senses::find(name) {
            Some(row) => return Ok(vec![row.model()]),
            None => name,
        },
        None if options.default_model.provider == PROVIDER => &options.default_model.model,
        None if options.unconfigured() => &chat::default().name,
        None => return Ok(Vec::new()),
    };
    let Some(weights) = chat::find(name) else {
        let known: Vec<&str> = chat::all().iter().map(|row| row.name.as_str()).collect();
        let senses: Vec<&str> = senses::all().iter().map(|row| row.name.as_str()).collect();
        bail!(
            "there is no local model {name:?}; there are {}, and for senses {}",
            known.join(" and "),
            senses.join(" and ")
        )
    };
    if options.local.is_none() {
        bail!("providers.local of the configuration is another provider");
    }
    Ok(vec![weights.model()])
}
