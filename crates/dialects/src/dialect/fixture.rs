//! A configuration for tests with only a few values.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

use quintet_kernel::model::ModelRef;
use serde_json::Value;

use super::{Config, Values};

/// The values that a test sets; `HOME` is the only variable.
pub(crate) struct Fixture {
    values: HashMap<&'static str, Value>,
    model: ModelRef,
}

impl Fixture {
    pub(crate) fn new(values: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let model = ModelRef { provider: "demo".into(), model: "demo".into() };
        Self { values: values.into_iter().collect(), model }
    }

    /// The configuration, with the data directory `/data`.
    pub(crate) fn config<'a>(&'a self, addresses: &'a [(&'static str, SocketAddr)]) -> Config<'a> {
        Config {
            values: self,
            addresses,
            data_dir: Path::new("/data"),
            default_model: &self.model,
            providers: &[],
        }
    }
}

impl Values for Fixture {
    fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.as_str()
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.values.get(key)?.as_bool()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.values.get(key)?.as_u64()
    }

    fn list(&self, key: &str) -> Option<Vec<String>> {
        let items = self.values.get(key)?.as_array()?;
        Some(items.iter().filter_map(|item| item.as_str().map(Into::into)).collect())
    }

    fn tables(&self, key: &str) -> Vec<Value> {
        self.values.get(key).and_then(|value| value.as_array().cloned()).unwrap_or_default()
    }

    fn source(&self, _key: &str) -> &'static str {
        "a test"
    }

    fn variable(&self, name: &str) -> Option<&str> {
        (name == "HOME").then_some("/home/me")
    }
}
