//! Tests of dynamic tools.

use std::sync::Arc;

use serde_json::json;

use crate::dynamic_tools::DynamicTools;
use crate::prompt::assemble;
use crate::tool::{Placement, ToolKind, ToolSpec};

use super::Session;

fn tool(name: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: String::new(),
        schema: json!({}),
        kind: ToolKind::Exec,
        placement: Placement::Daemon,
        strict: false,
    })
}

fn offered(session: &Session) -> Vec<String> {
    assemble(&session.state).tools.iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn an_unlisted_tool_can_be_called() {
    let mut session = Session::after("create; say go");
    let before = offered(&session);
    let tools = DynamicTools { listed: vec![tool("a__x")], unlisted: vec![tool("a__y")] };
    session.state.set_dynamic_tools(Arc::new(tools));
    assert_eq!(offered(&session), [before, vec!["a__x".into()]].concat());
    session.play("answer c1 a__y {}").unwrap();
    assert_eq!(session.log.last().unwrap(), "c1 starts at Daemon");
}

#[test]
fn a_removed_tool_is_unknown() {
    let mut session = Session::after("create; say go");
    session.play("answer c1 a__y {}").unwrap();
    let log = session.log.join("\n");
    assert!(log.contains("unknown tool: a__y"), "{log}");
}
