//! The table of the senses' models: their files, licences and sources.

use std::sync::LazyLock;

use quintet_kernel::port::SenseError;
use quintet_weights::{Model, WeightFile, is_present};
use serde::Deserialize;

use crate::Settings;

/// The name under which `quintet models pull` downloads all of them.
pub const ALL: &str = "senses";

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/weights.toml")).expect("the built-in table is well formed")
});

#[derive(Debug, Deserialize)]
struct Table {
    weights: Vec<Weights>,
}

/// The weights of a sense.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// The sense, which is also the name for `quintet models pull`.
    pub name: String,
    /// The name of the model.
    pub title: String,
    /// The licence of the weights.
    pub licence: String,
    /// The files, all of which are needed.
    pub files: Vec<WeightFile>,
}

impl Weights {
    /// The model as `quintet models pull` fetches it.
    pub fn model(&self) -> Model<'_> {
        Model { name: &self.name, title: &self.title, files: &self.files }
    }
}

/// All rows.
pub fn all() -> &'static [Weights] {
    &TABLE.weights
}

/// The row of a sense.
pub fn find(name: &str) -> Option<&'static Weights> {
    all().iter().find(|weights| weights.name == name)
}

/// Fails if files of a sense's weights are missing.
pub(crate) fn check(sense: &'static str, settings: &Settings) -> Result<(), SenseError> {
    let row = find(sense).ok_or(SenseError::MissingWeights(sense))?;
    if is_present(row.model(), &settings.models_dir) {
        Ok(())
    } else {
        Err(SenseError::MissingWeights(sense))
    }
}

#[cfg(test)]
mod tests;
