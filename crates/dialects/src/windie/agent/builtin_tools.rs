//! The built-in tools of computer use that every client runs, and the one that the daemon runs.

use std::sync::LazyLock;

use quintet_kernel::pictures::LOOK_TOOL;
use quintet_kernel::tool::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::windie::wire::tool_manifest::resolution;

/// The tool that the daemon runs for agents.
pub(crate) const WEB_SEARCH: &str = "web_search";
pub(crate) const WEB_SEARCH_DESCRIPTION: &str = "Search the web.";

static TOOLS: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| {
    let text = include_str!("builtin_tools.json");
    serde_json::from_str(text).expect("the catalogue is part of this program")
});

/// A tool that every client has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuiltIn {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) capability: String,
    /// True if the daemon finds places on the screen for it.
    #[serde(default)]
    pub(crate) grounded: bool,
    /// True if it may change what is on the screen.
    #[serde(default)]
    pub(crate) computer_use: bool,
    /// True if it changes nothing on the user's computer, so that another client may repeat a call.
    #[serde(default)]
    pub(crate) only_looks: bool,
    /// True if agents in chat mode may not use it.
    #[serde(default)]
    agent_only: bool,
    pub(crate) parameters: Value,
}

pub(crate) fn tools() -> &'static [BuiltIn] {
    &TOOLS
}

pub(crate) fn tool(name: &str) -> Option<&'static BuiltIn> {
    tools().iter().find(|tool| tool.name == name)
}

/// True if agents in chat mode may use a tool.
pub(crate) fn in_chat(name: &str) -> bool {
    [WEB_SEARCH, LOOK_TOOL].contains(&name) || tool(name).is_some_and(|tool| !tool.agent_only)
}

impl BuiltIn {
    /// The tool as a flat function, before the selection for an agent.
    pub(crate) fn canonical(&self) -> Value {
        function(&self.name, &self.description, &self.parameters)
    }
}

/// The properties of a tool besides its schema; `None` if there is no such tool.
pub(crate) fn capabilities(name: &str) -> Option<Value> {
    if name == WEB_SEARCH {
        return Some(daemon_capabilities(name, WEB_SEARCH_DESCRIPTION));
    }
    let tool = tool(name)?;
    Some(json!({
        "tool_name": tool.name,
        "description": tool.description,
        "capability": tool.capability,
        "execution_target": "local_runtime",
        "argument_resolution": resolution(tool.grounded),
        "computer_use": tool.computer_use,
        "interaction_modes": modes(name),
    }))
}

/// The modes in which an agent may use a tool.
fn modes(name: &str) -> &'static [&'static str] {
    if in_chat(name) { &["chat", "agent"] } else { &["agent"] }
}

/// The properties of a tool that the daemon runs.
pub(crate) fn daemon_capabilities(name: &str, description: &str) -> Value {
    json!({
        "tool_name": name,
        "description": description,
        "capability": name,
        "execution_target": "backend",
        "argument_resolution": resolution(false),
        "computer_use": false,
        "interaction_modes": modes(name),
    })
}

/// A tool as a flat function, the form of HTTP answers.
pub(crate) fn flat(spec: &ToolSpec) -> Value {
    function(&spec.name, &spec.description, &spec.schema)
}

/// A tool as a function in an object of its own, the form of events.
pub(crate) fn nested(spec: &ToolSpec) -> Value {
    let ToolSpec { name, description, schema, .. } = spec;
    let function = json!({ "name": name, "description": description, "parameters": schema });
    json!({ "type": "function", "function": function })
}

pub(crate) fn function(name: &str, description: &str, parameters: &Value) -> Value {
    json!({ "type": "function", "name": name, "description": description, "parameters": parameters })
}

#[cfg(test)]
mod tests;
