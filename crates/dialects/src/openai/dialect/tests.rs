//! The options of the OpenAI-compatible API.

use serde_json::{Value, json};

use super::*;
use crate::dialect::fixture::Fixture;

fn configured(values: &[(&'static str, Value)]) -> Result<Box<dyn Protocol>, ConfigError> {
    let fixture = Fixture::new(values.iter().cloned());
    configure(&fixture.config(&[]))
}

#[test]
fn the_workspace_must_be_absolute() {
    assert!(configured(&[]).is_ok());
    assert!(configured(&[("openai.workspace", json!("/srv/work"))]).is_ok());
    let error = configured(&[("openai.workspace", json!("work"))]).unwrap_err();
    assert!(error.0.contains("openai.workspace must be an absolute path"), "{error}");
}
