//! The desktop's tools, and their form in the core.

use quintet_kernel::toolset::{ClientTool, Toolset};
use quintet_kernel::{State, tool};
use serde_json::json;

use super::wire;

pub(super) use super::wire::Risk;

/// The name of this front end, and of all desktops: nothing in the protocol tells one from another.
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

/// The core's word for a risk.
pub(super) fn risk(risk: Risk) -> tool::Risk {
    match risk {
        Risk::Safe => tool::Risk::Low,
        Risk::Risky => tool::Risk::Medium,
        Risk::Forbidden => tool::Risk::Critical,
    }
}

/// The protocol's word for a risk.
pub(super) fn risk_word(risk: tool::Risk) -> Risk {
    match risk {
        tool::Risk::Low => Risk::Safe,
        tool::Risk::Medium | tool::Risk::High => Risk::Risky,
        tool::Risk::Critical => Risk::Forbidden,
    }
}

/// A tool that a desktop brings.
pub(super) fn brought(tool: wire::Tool) -> ClientTool {
    let nothing = || json!({ "type": "object", "properties": {} });
    ClientTool {
        name: tool.name,
        description: tool.description,
        schema: tool.parameters.unwrap_or_else(nothing),
        risk: risk(tool.risk),
        repeatable: false,
        front_end: Some(FRONT_END.into()),
        strict: false,
    }
}

/// The tools of a session that a desktop begins.
pub(super) fn of_new(usual: &Toolset, brought: &[ClientTool]) -> Toolset {
    Toolset { client: joined(&usual.client, brought), ..usual.clone() }
}

/// The tools of a session that a desktop comes to: what it has, and what the desktop adds. A usual
/// tool makes way for one of the daemon's that the session has already.
pub(super) fn of_resumed(state: &State, usual: &Toolset, brought: &[ClientTool]) -> Toolset {
    let fits = |tool: &&ClientTool| {
        let known = state.tool(&tool.name);
        known.is_none_or(|known| known.placement == tool::Placement::Client)
    };
    let usual_here: Vec<_> = usual.client.iter().filter(fits).cloned().collect();
    let client = joined(&joined(&state.toolset.client, &usual_here), brought);
    Toolset { client, daemon: state.toolset.daemon.clone(), ..usual.clone() }
}

/// What is wrong with tools that a desktop brings, if the session has one of the daemon's by such a name.
pub(super) fn name_conflict(state: &State, brought: &[ClientTool]) -> Option<String> {
    let is_daemons = |tool: &&ClientTool| {
        state.tool(&tool.name).is_some_and(|known| known.placement == tool::Placement::Daemon)
    };
    let name_conflict = brought.iter().find(is_daemons)?;
    Some(format!("the daemon has a tool {} itself", name_conflict.name))
}

/// Both, of which the newer counts where they have a name in common.
fn joined(old: &[ClientTool], new: &[ClientTool]) -> Vec<ClientTool> {
    let newest = |tool: &ClientTool| {
        let newer = new.iter().find(|newer| newer.name == tool.name);
        newer.unwrap_or(tool).clone()
    };
    let added = new.iter().filter(|tool| old.iter().all(|older| older.name != tool.name));
    old.iter().map(newest).chain(added.cloned()).collect()
}
