//! The catalog of models: capabilities and descriptions.

use super::{Effort, ModelRef, Usage};
use crate::message::MediaKind;

/// The known capabilities of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Supported media besides text.
    pub inputs: Vec<MediaKind>,
    /// True if the model can call tools.
    pub tools: bool,
    /// Context window in tokens, if known.
    pub context_window: Option<u64>,
    /// Whether the provider searches the web for the model.
    pub search: SearchSupport,
}

/// Whether a model's provider searches the web for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchSupport {
    /// Not supported, as far as known.
    #[default]
    Never,
    /// Supported, but not enabled in the configuration.
    Off,
    /// Only in requests without tools.
    WithoutTools,
    /// In requests with and without tools.
    WithTools,
}

impl SearchSupport {
    /// True if the provider searches in a request with this many tools.
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
    /// The model's capabilities.
    pub profile: Profile,
    /// The model's description.
    pub about: ModelDetails,
    /// True if it can be called now: its provider has an API key, or it runs locally.
    pub usable: bool,
}

/// The description of a model. Everything except its name may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelDetails {
    /// The display name.
    pub label: String,
    /// The model family, for programs: `openai::gpt-5`.
    pub family: Option<String>,
    /// The display name of the family.
    pub family_label: Option<String>,
    /// Where the model runs.
    pub side: ModelLocation,
    /// Supported reasoning efforts; empty if there is no choice.
    pub efforts: Vec<Effort>,
    /// The default reasoning effort.
    pub default_effort: Option<Effort>,
    /// True if the model reasons before it responds.
    pub thinking: bool,
    /// True if its provider can search the web for it.
    pub web_search: bool,
    /// Maximum number of output tokens.
    pub max_output: Option<u64>,
    /// A one-sentence description.
    pub description: Option<String>,
    /// What the model is good at.
    pub strengths: Vec<String>,
    /// The price.
    pub price: Option<Price>,
    /// The typical latency.
    pub latency: Option<Latency>,
}

/// Where a model runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelLocation {
    /// At a provider that needs an API key.
    #[default]
    Online,
    /// On this machine or in its network.
    Local,
}

/// Prices for a million tokens, in millionths of a US dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Cached input tokens.
    pub cached: Option<u64>,
}

impl Price {
    /// The cost of these tokens, in millionths of a US dollar. Writing to a cache counts as
    /// reading.
    pub fn cost(self, usage: Usage) -> u64 {
        let product = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let cached = usage.cached.min(usage.input);
        let sum = product(usage.input - cached, self.input)
            + product(cached, self.cached.unwrap_or(self.input))
            + product(usage.output, self.output);
        u64::try_from(sum / 1_000_000).unwrap_or(u64::MAX)
    }
}

/// The time to the first output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Well under a second.
    Fast,
    /// A second or two.
    Medium,
    /// The model reasons before it responds.
    Slow,
}

impl Latency {
    /// The name used in protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Medium => "medium",
            Self::Slow => "slow",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = Price { input: 1_250_000, output: 10_000_000, cached: Some(125_000) };
        let usage = Usage { input: 1_000, output: 100, cached: 800, ..Usage::default() };
        assert_eq!(price.cost(usage), 250 + 100 + 1_000);
        assert_eq!(Price { cached: None, ..price }.cost(usage), 1_250 + 1_000);
        let odd = Usage { input: 1, cached: 9, ..Usage::default() };
        assert_eq!(price.cost(odd), 0);
    }
}
