//! How the API is set up.

use serde_json::{Value, json};

use super::*;
use crate::dialect::fixture::Fixture;

fn configured(values: &[(&'static str, Value)]) -> Result<Box<dyn Protocol>, ConfigError> {
    let fixture = Fixture::new(values.iter().cloned());
    configure(&fixture.config(&[]))
}

#[test]
fn a_workspace_is_absolute() {
    assert!(configured(&[]).is_ok());
    assert!(configured(&[("openai.workspace", json!("/srv/work"))]).is_ok());
    let refused = configured(&[("openai.workspace", json!("work"))]).unwrap_err();
    assert!(refused.0.contains("openai.workspace must be an absolute path"), "{refused}");
}
