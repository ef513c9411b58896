//! The options of the desktop assistant: valid and invalid values.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::dialect::fixture::Fixture;

fn read(values: impl IntoIterator<Item = (&'static str, Value)>) -> Result<Settings, String> {
    settings(&Fixture::new(values).config(&[])).map_err(|error| error.0)
}

fn names(settings: &Settings) -> Vec<&str> {
    settings.toolset.client.iter().map(|tool| tool.name.as_str()).collect()
}

#[test]
fn configured_tools_are_added_to_the_default_ones() {
    let default = read([("jarvis.session_expiry", json!(86400))]).unwrap();
    assert_eq!(default.expiry, Some(Duration::from_secs(24 * 60 * 60)));
    assert_eq!(default.workspace, Path::new("/data/workspace"));
    assert_eq!(names(&default), ["open_app", "run_whitelisted"]);
    let tools =
        json!([{ "name": "lock", "risk": "safe" }, { "name": "open_app", "risk": "forbidden" }]);
    let set = read([
        ("jarvis.session_expiry", json!(0)),
        ("jarvis.tool_timeout", json!(0)),
        ("jarvis.daemon_tools", json!(["read_file"])),
        ("jarvis.tools", tools),
    ])
    .unwrap();
    assert_eq!(names(&set), ["run_whitelisted", "lock", "open_app"]);
    assert_eq!((set.expiry, set.toolset.timeout_ms), (None, None));
    assert!(set.toolset.includes("read_file") && set.toolset.includes("memory_search"));
    assert!(!set.toolset.includes("shell"));
}

#[test]
fn an_invalid_tool_is_named_in_the_error() {
    let error = read([("jarvis.tools", json!([{ "name": "lock", "colour": "red" }]))]).unwrap_err();
    assert!(error.starts_with("jarvis.tools: lock: unknown field \"colour\""), "{error}");
    assert!(error.ends_with("(a test)"), "{error}");
    let error = read([("jarvis.workspace", json!("notes"))]).unwrap_err();
    assert!(error.starts_with("jarvis.workspace must be an absolute path"), "{error}");
}
