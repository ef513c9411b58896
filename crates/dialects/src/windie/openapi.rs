//! The OpenAPI document of the dialect.

use serde_json::Value;

/// The document, kept as a file beside this one so that people can read it.
pub(super) fn document() -> Value {
    serde_json::from_str(include_str!("openapi.json")).expect("openapi.json is checked by a test")
}
