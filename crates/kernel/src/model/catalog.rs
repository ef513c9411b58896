//! What is known of a model: enough to choose one, and to keep within what it can do.

use super::{Effort, ModelRef};
use crate::message::MediaKind;

/// What a model can do, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Media it takes besides text.
    pub inputs: Vec<MediaKind>,
    /// Whether it can call tools.
    pub tools: bool,
    /// Tokens it can read at once, where known.
    pub context_window: Option<u64>,
    /// Whether its provider searches the web for it.
    pub search: SearchSupport,
}

/// Whether a model's provider searches the web for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchSupport {
    /// The model cannot search, as far as is known.
    #[default]
    Never,
    /// The model could search, but searches are paid for and not switched on.
    Off,
    /// Only where the model is offered no tools.
    WithoutTools,
    /// Also beside tools.
    WithTools,
}

impl SearchSupport {
    /// Whether it does for a model that is offered this many tools.
    pub fn available_with(self, tools: usize) -> bool {
        match self {
            Self::Never | Self::Off => false,
            Self::WithoutTools => tools == 0,
            Self::WithTools => true,
        }
    }
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The model.
    pub model: ModelRef,
    /// What it can do.
    pub profile: Profile,
    /// What people are told of it.
    pub about: ModelDetails,
    /// Whether it can be asked now: there is a key for its provider, or it runs here.
    pub usable: bool,
}

/// What people are told of a model. Everything but its name may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelDetails {
    /// The name for people.
    pub label: String,
    /// What it is a version of, for programs: `openai::gpt-5`.
    pub family: Option<String>,
    /// The same for people.
    pub family_label: Option<String>,
    /// Where it runs.
    pub side: ModelLocation,
    /// How much it can be told to think; nothing if it cannot be told, or does not think.
    pub efforts: Vec<Effort>,
    /// How much it thinks by itself.
    pub default_effort: Option<Effort>,
    /// Whether it thinks before it answers.
    pub thinking: bool,
    /// Whether its provider can search the web for it.
    pub web_search: bool,
    /// The most tokens it writes at once.
    pub max_output: Option<u64>,
    /// A sentence on it.
    pub description: Option<String>,
    /// What it is good at, in words.
    pub strengths: Vec<String>,
    /// What it costs.
    pub price: Option<Price>,
    /// How soon it answers.
    pub latency: Option<Latency>,
}

/// Where a model runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelLocation {
    /// At somebody else's, for a key.
    #[default]
    Online,
    /// On this machine or in its network.
    Local,
}

/// Prices for a million tokens, in millionths of a US dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the cache.
    pub cached: Option<u64>,
}

/// How soon a model answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Well under a second.
    Fast,
    /// A second or two.
    Medium,
    /// The model thinks before it answers.
    Slow,
}

impl Latency {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Medium => "medium",
            Self::Slow => "slow",
        }
    }
}
