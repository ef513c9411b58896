//! The built-in catalogue of models: the tables of `data/models.toml`.

use std::sync::LazyLock;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Effort, Latency, ModelDetails, Price};
use serde::Deserialize;

use crate::facts::Thinking;
use crate::tokenizer::Tokenizer;

/// One model of the catalogue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    vendor: String,
    pub(crate) id: String,
    label: String,
    family: Option<String>,
    family_label: Option<String>,
    #[serde(rename = "context")]
    pub(crate) context_window: u64,
    #[serde(rename = "output")]
    pub(crate) max_output: Option<u64>,
    inputs: Vec<String>,
    #[serde(default = "default_true")]
    pub(crate) tools: bool,
    thinking: String,
    #[serde(default)]
    efforts: Vec<String>,
    effort: Option<String>,
    #[serde(default)]
    pub(crate) web_search: bool,
    tokenizer: Option<String>,
    price: Option<Vec<f64>>,
    latency: Option<String>,
    #[serde(default)]
    strengths: Vec<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Tables {
    model: Vec<Entry>,
}

fn default_true() -> bool {
    true
}

static MODELS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let tables: Tables = toml::from_str(include_str!("../data/models.toml"))
        .expect("a test checks the tables of models");
    tables.model
});

/// The models of a vendor.
pub(crate) fn of(vendor: &str) -> impl Iterator<Item = &'static Entry> {
    MODELS.iter().filter(move |entry| entry.vendor == vendor)
}

/// Finds a model of a vendor. Routers name models `maker/model`, which are looked up in their
/// makers' rows.
pub(crate) fn find(vendor: &str, id: &str) -> Option<&'static Entry> {
    let direct = of(vendor).filter(|entry| entry.matches(id)).max_by_key(|entry| entry.id.len());
    direct.or_else(|| {
        let (maker, model) = id.split_once('/')?;
        let model = model.replace('.', "-");
        let known = |entry: &&Entry| entry.id.replace('.', "-") == model;
        of(maker).find(known)
    })
}

impl Entry {
    /// True if this entry describes the model, or `id` is one of its dated versions.
    fn matches(&self, id: &str) -> bool {
        let id = id.strip_suffix("-latest").unwrap_or(id);
        let rest = id.strip_prefix(self.id.strip_suffix("-latest").unwrap_or(&self.id));
        rest.is_some_and(|rest| rest.is_empty() || is_version(rest))
    }

    pub(crate) fn inputs(&self) -> Vec<MediaKind> {
        let known =
            |word: &String| crate::facts::all_media().into_iter().find(|k| k.name() == word);
        self.inputs.iter().filter_map(known).collect()
    }

    pub(crate) fn thinking(&self) -> Thinking {
        Thinking::parse(&self.thinking).unwrap_or_default()
    }

    pub(crate) fn tokenizer(&self) -> Option<Tokenizer> {
        Tokenizer::parse(self.tokenizer.as_ref()?)
    }

    pub(crate) fn efforts(&self) -> Vec<Effort> {
        self.efforts.iter().filter_map(|word| Effort::parse(word)).collect()
    }

    pub(crate) fn price(&self) -> Option<Price> {
        self.price.as_deref().and_then(price)
    }

    /// The description for users.
    pub(crate) fn about(&self) -> ModelDetails {
        let family = self.family.as_ref().map(|family| format!("{}::{family}", self.vendor));
        ModelDetails {
            label: self.label.clone(),
            family,
            family_label: self.family_label.clone(),
            efforts: self.efforts(),
            default_effort: self.effort.as_deref().and_then(Effort::parse),
            thinking: self.thinking() != Thinking::Never,
            web_search: self.web_search,
            max_output: self.max_output,
            description: self.description.clone(),
            strengths: self.strengths.clone(),
            price: self.price(),
            latency: self.latency.as_deref().and_then(latency),
            ..ModelDetails::default()
        }
    }
}

/// A date or a number: `-20250929`, `-2025-04-14`, `-001`, `:0`.
fn is_version(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(['-', '@', ':']) else { return false };
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "prices are small, and a test checks that none is negative"
)]
fn price(dollars: &[f64]) -> Option<Price> {
    let micro = |dollars: &f64| (dollars * 1e6).round() as u64;
    let [input, output, rest @ ..] = dollars else { return None };
    Some(Price { input: micro(input), output: micro(output), cached: rest.first().map(micro) })
}

fn latency(word: &str) -> Option<Latency> {
    [Latency::Fast, Latency::Medium, Latency::Slow].into_iter().find(|known| known.name() == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::Vendor;

    #[test]
    fn every_table_is_valid() {
        for entry in &*MODELS {
            let id = &entry.id;
            assert!(Vendor::named(&entry.vendor).is_some(), "{id}: no vendor {}", entry.vendor);
            assert!(Thinking::parse(&entry.thinking).is_some(), "{id}: {}", entry.thinking);
            assert_eq!(entry.tokenizer().is_some(), entry.tokenizer.is_some(), "{id}");
            assert_eq!(entry.inputs().len(), entry.inputs.len(), "{id}: {:?}", entry.inputs);
            assert_eq!(entry.efforts().len(), entry.efforts.len(), "{id}: {:?}", entry.efforts);
            let about = entry.about();
            assert_eq!(about.default_effort.is_some(), entry.effort.is_some(), "{id}");
            assert_eq!(about.latency.is_some(), entry.latency.is_some(), "{id}");
            let prices = entry.price.iter().flatten();
            assert!(prices.into_iter().all(|price| (0.0..1000.0).contains(price)), "{id}");
        }
    }

    #[test]
    fn every_default_model_of_a_vendor_is_in_the_catalogue() {
        for vendor in crate::vendor::vendors() {
            if let Some(model) = &vendor.model {
                assert!(find(&vendor.name, model).is_some(), "{}/{model}", vendor.name);
            }
        }
    }

    #[test]
    fn dated_versions_and_routed_names_are_known() {
        let id = |vendor, model| find(vendor, model).map(|entry| entry.id.as_str());
        assert_eq!(id("anthropic", "claude-sonnet-4-5-20250929"), Some("claude-sonnet-4-5"));
        assert_eq!(id("anthropic", "claude-sonnet-4-20250514"), Some("claude-sonnet-4"));
        assert_eq!(id("openai", "gpt-5-mini-2025-08-07"), Some("gpt-5-mini"));
        assert_eq!(id("openai", "gpt-5-pro"), None);
        assert_eq!(id("openrouter", "anthropic/claude-sonnet-4.5"), Some("claude-sonnet-4-5"));
        assert_eq!(id("mistral", "codestral-2508"), Some("codestral-latest"));
        assert_eq!(id("ollama", "llama3.2:3b"), None);
    }
}
