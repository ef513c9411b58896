//! Vendors of models: the rows of `data/vendors.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use quintet_kernel::model::ModelLocation;
use serde::Deserialize;

use crate::config::{Api, ProviderConfig};
use crate::quirks::{EffortStyle, Quirks};

/// A vendor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// The default name of its provider.
    pub name: String,
    /// The name for people.
    pub label: String,
    api: String,
    elsewhere: Option<String>,
    base_url: String,
    /// The environment variable that overrides its address, if any.
    pub url_variable: Option<String>,
    /// Environment variables for its key; the first one set is used.
    #[serde(default, rename = "key")]
    pub key_variables: Vec<String>,
    /// The model that is used if none is named.
    pub model: Option<String>,
    /// True if it runs on this machine.
    #[serde(default)]
    pub local: bool,
    #[serde(default)]
    hide: Vec<String>,
    #[serde(default)]
    max_completion_tokens: bool,
    #[serde(default = "default_true")]
    stream_options: bool,
    #[serde(default)]
    short_ids: bool,
    #[serde(default)]
    thoughts_back: bool,
    effort: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Rows {
    vendor: Vec<Vendor>,
}

fn default_true() -> bool {
    true
}

static VENDORS: LazyLock<Vec<Vendor>> = LazyLock::new(|| {
    let rows: Rows = toml::from_str(include_str!("../data/vendors.toml"))
        .expect("a test checks the rows of vendors");
    rows.vendor
});

/// All vendors, in the order in which they are offered.
pub fn vendors() -> &'static [Vendor] {
    &VENDORS
}

impl Vendor {
    /// The vendor of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        vendors().iter().find(|vendor| vendor.name == name)
    }

    /// The provider that this row describes, without a key.
    pub fn provider(&self) -> ProviderConfig {
        let api = Api::parse(&self.api).unwrap_or(Api::OpenAiChat);
        ProviderConfig {
            base_url: self.base_url.clone(),
            needs_key: !self.key_variables.is_empty(),
            side: if self.local { ModelLocation::Local } else { ModelLocation::Online },
            hide: self.hide.clone(),
            default_model: self.model.clone(),
            quirks: self.quirks(),
            ..ProviderConfig::new(self.name.clone(), api)
        }
    }

    /// The provider of this vendor at another address, which may be another server with the same API.
    pub fn provider_at(&self, base_url: &str) -> ProviderConfig {
        let elsewhere = self.elsewhere.as_deref().and_then(Api::parse);
        let provider = self.provider();
        ProviderConfig {
            api: elsewhere.unwrap_or(provider.api),
            base_url: base_url.into(),
            ..provider
        }
    }

    fn quirks(&self) -> Quirks {
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        Quirks {
            max_completion_tokens: self.max_completion_tokens,
            stream_options: self.stream_options,
            effort: EffortStyle::parse(self.effort.as_deref().unwrap_or("word"))
                .unwrap_or(EffortStyle::Word),
            thoughts_back: self.thoughts_back,
            short_ids: self.short_ids,
            headers: headers.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_gives_a_provider() {
        let mut names = HashSet::new();
        for vendor in vendors() {
            assert!(names.insert(&vendor.name), "{} twice", vendor.name);
            assert!(Api::parse(&vendor.api).is_some(), "{}: {}", vendor.name, vendor.api);
            let elsewhere = vendor.elsewhere.as_deref();
            assert!(elsewhere.is_none_or(|api| Api::parse(api).is_some()), "{}", vendor.name);
            let effort = vendor.effort.as_deref();
            assert!(effort.is_none_or(|word| EffortStyle::parse(word).is_some()), "{effort:?}");
            assert_eq!(vendor.local, vendor.key_variables.is_empty(), "{}", vendor.name);
            let provider = vendor.provider();
            assert!(provider.base_url.starts_with("http"), "{}", vendor.name);
        }
        let mistral = Vendor::named("mistral").unwrap().provider().quirks;
        assert!(mistral.short_ids && !mistral.stream_options);
        let openai = Vendor::named("openai").unwrap();
        assert_eq!(openai.provider().api, Api::OpenAiResponses);
        assert_eq!(openai.provider_at("http://x/v1").api, Api::OpenAiChat);
    }
}
