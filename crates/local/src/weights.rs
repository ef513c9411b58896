//! The table of local models: their capabilities and the sources of their files.

use std::sync::LazyLock;

use quintet_weights::{Model, WeightFile};
use serde::Deserialize;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/weights.toml")).expect("the built-in table is well formed")
});

#[derive(Debug, Deserialize)]
struct Table {
    weights: Vec<Weights>,
}

/// A model with downloadable weights.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// The name of the model.
    pub name: String,
    /// Shorter names of the model.
    pub aliases: Vec<String>,
    /// The display name.
    pub title: String,
    /// One sentence about the model.
    pub description: String,
    /// The model's strengths.
    pub strengths: Vec<String>,
    /// The chat template of the model.
    pub family: Family,
    /// True if it can call tools well enough to be offered any.
    pub tools: bool,
    /// True if it needs the help for small models: few tools, examples, answers constrained by a
    /// grammar.
    #[serde(default)]
    pub small: bool,
    /// The context window that it was trained with, in tokens.
    pub context: u32,
    /// The file with the weights.
    pub file: WeightFile,
}

/// The chat template of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// ChatML with tools in the system prompt.
    Qwen,
    /// ChatML.
    SmolLm2,
}

/// All models, the best first.
pub fn all() -> &'static [Weights] {
    &TABLE.weights
}

/// The model of a name or alias.
pub fn find(name: &str) -> Option<&'static Weights> {
    all().iter().find(|weights| weights.name == name || weights.aliases.iter().any(|a| a == name))
}

/// The default model.
pub fn default() -> &'static Weights {
    find("default").expect("the built-in table names a default")
}

impl Weights {
    /// The model as `quintet models pull` fetches it.
    pub fn model(&self) -> Model<'_> {
        Model { name: &self.name, title: &self.title, files: std::slice::from_ref(&self.file) }
    }
}

#[cfg(test)]
mod tests;
