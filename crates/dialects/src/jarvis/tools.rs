//! The tools of desktops.

use quintet_kernel::toolset::{ClientTool, Toolset};
use quintet_kernel::{State, tool};
use serde_json::json;

use super::wire;

pub(super) use super::wire::Risk;

/// The name of this front end, and of all desktops, because the protocol does not distinguish them.
pub(super) const FRONT_END: &str = "jarvis";

/// The two tools that every desktop has.
pub(super) fn default_tools() -> Vec<ClientTool> {
    let tool = |name: &str, description: &str, argument: &str, what: &str| {
        let properties = json!({ argument: { "type": "string", "description": what } });
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": [argument],
            "additionalProperties": false,
        });
        let (name, description, risk) = (name.into(), description.into(), tool::Risk::Medium);
        let front_end = Some(FRONT_END.into());
        ClientTool { name, description, schema, risk, repeatable: false, front_end, strict: false }
    };
    vec![
        tool(
            "open_app",
            "Open an application on the user's desktop.",
            "app_id",
            "Which application, such as \"calendar\".",
        ),
        tool(
            "run_whitelisted",
            "Run one of the commands that the user has allowed on the desktop.",
            "cmd_id",
            "The name of the allowed command.",
        ),
    ]
}

/// The core's level for a risk of the protocol.
pub(super) fn risk(risk: Risk) -> tool::Risk {
    match risk {
        Risk::Safe => tool::Risk::Low,
        Risk::Risky => tool::Risk::Medium,
        Risk::Forbidden => tool::Risk::Critical,
    }
}

/// The protocol's level for a risk of the core.
pub(super) fn wire_risk(risk: tool::Risk) -> Risk {
    match risk {
        tool::Risk::Low => Risk::Safe,
        tool::Risk::Medium | tool::Risk::High => Risk::Risky,
        tool::Risk::Critical => Risk::Forbidden,
    }
}

/// A tool that a desktop registers.
pub(super) fn client_tool(tool: wire::Tool) -> ClientTool {
    let no_parameters = || json!({ "type": "object", "properties": {} });
    ClientTool {
        name: tool.name,
        description: tool.description,
        schema: tool.parameters.unwrap_or_else(no_parameters),
        risk: risk(tool.risk),
        repeatable: false,
        front_end: Some(FRONT_END.into()),
        strict: false,
    }
}

/// The tools of a new session.
pub(super) fn of_new(default: &Toolset, added: &[ClientTool]) -> Toolset {
    Toolset { client: merged(&default.client, added), ..default.clone() }
}

/// The tools of a continued session: those that it has, the default ones, and those that the desktop adds.
/// A default tool is left out if the session has a tool of the daemon with that name.
pub(super) fn of_resumed(state: &State, default: &Toolset, added: &[ClientTool]) -> Toolset {
    let fits = |tool: &&ClientTool| {
        let known = state.tool(&tool.name);
        known.is_none_or(|known| known.placement == tool::Placement::Client)
    };
    let default_here: Vec<_> = default.client.iter().filter(fits).cloned().collect();
    let client = merged(&merged(&state.toolset.client, &default_here), added);
    Toolset { client, daemon: state.toolset.daemon.clone(), ..default.clone() }
}

/// The error if the session has a tool of the daemon with the name of an added tool.
pub(super) fn name_conflict(state: &State, added: &[ClientTool]) -> Option<String> {
    let is_daemons = |tool: &&ClientTool| {
        state.tool(&tool.name).is_some_and(|known| known.placement == tool::Placement::Daemon)
    };
    let conflict = added.iter().find(is_daemons)?;
    Some(format!("the daemon already has a tool named {}", conflict.name))
}

/// Merges two lists; of two tools with the same name the newer one is used.
fn merged(old: &[ClientTool], new: &[ClientTool]) -> Vec<ClientTool> {
    let newest = |tool: &ClientTool| {
        let newer = new.iter().find(|newer| newer.name == tool.name);
        newer.unwrap_or(tool).clone()
    };
    let extra = new.iter().filter(|tool| old.iter().all(|older| older.name != tool.name));
    old.iter().map(newest).chain(extra.cloned()).collect()
}
