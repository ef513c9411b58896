//! Selects the tools of an agent: all available ones, without those that the client, the user or the daemon
//! disable.

use std::time::Duration;

use quintet_kernel::pictures::LOOK_TOOL;
use quintet_kernel::tool::Risk;
use quintet_kernel::toolset::{CallTimeout, ClientTool, Toolset};
use serde_json::{Value, json};

use super::builtin_tools;
use super::builtin_tools::{WEB_SEARCH, WEB_SEARCH_DESCRIPTION};
use crate::windie::wire::agent_definition::{Capability, Definition, Method, ToolsMode};
use crate::windie::wire::tool_manifest::Manifest;
use crate::windie::wire::user_settings::{Interaction, Settings};

/// The name of this front end; those of its clients begin with it.
pub(crate) const FRONT_END: &str = "windie";

/// The time limit of a call whose tool has no other.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest time for any call.
const TIMEOUT_LIMIT_SECONDS: u64 = 900;
/// The time limit of a command that names none.
const COMMAND_SECONDS: u64 = 120;
/// The time that the client may take in addition to the command.
const EXTRA_SECONDS: u64 = 15;

/// True if clients of this front end run a call, and not those of another one.
pub(crate) fn is_own_tool(front_end: Option<&str>) -> bool {
    front_end.is_none_or(|front_end| front_end == FRONT_END)
}

/// What the daemon itself can do for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Whether the daemon can search the web, or why not.
    pub web_search: Result<(), String>,
    /// True if the daemon finds text on pictures.
    pub ocr: bool,
    /// True if the daemon finds things on pictures.
    pub vision: bool,
    /// The daemon's own tools that need no approval, because this protocol has no approvals.
    pub tools: Vec<String>,
}

impl Default for Abilities {
    fn default() -> Self {
        let web_search = Err("web search is not configured".into());
        Self { web_search, ocr: false, vision: false, tools: Vec::new() }
    }
}

/// The inputs of a tool selection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolSelection<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) manifest: &'a Manifest,
    pub(crate) settings: &'a Settings,
    pub(crate) abilities: &'a Abilities,
}

impl ToolSelection<'_> {
    /// The tools of the agent. The daemon's own tools need a folder of this machine, and tools of the client
    /// replace those of the same name.
    pub(crate) fn toolset(&self, has_folder: bool) -> Toolset {
        let provided = if self.has_client_tools() { &self.manifest.accepted[..] } else { &[] };
        let overridden = |name: &str| provided.iter().any(|tool| tool.name == name);
        let built_in = builtin_tools::tools().iter();
        let built_in =
            built_in.filter(|tool| self.lists(&tool.name, false) && !overridden(&tool.name));
        let built_in = built_in.map(|tool| ClientTool {
            repeatable: tool.only_looks,
            ..self.tool(&tool.name, &tool.description, &tool.parameters, tool.grounded)
        });
        let provided = provided.iter().filter(|tool| self.lists(&tool.name, true));
        let provided = provided
            .map(|tool| self.tool(&tool.name, &tool.description, &tool.parameters, tool.grounded));
        let client: Vec<ClientTool> =
            built_in.chain(provided).filter(|tool| self.allows(&tool.name)).collect();
        let searches = self.wants_search() && self.abilities.web_search.is_ok();
        // Pictures of the conversation can be read without a folder.
        let is_usable = |name: &str| has_folder || name == LOOK_TOOL;
        let own = self.abilities.tools.iter();
        let own = own.filter(|name| is_usable(name) && self.wants_own(name));
        let own = own.filter(|name| client.iter().all(|tool| tool.name != **name)).cloned();
        let daemon = Some(searches.then(|| WEB_SEARCH.into()).into_iter().chain(own).collect());
        let timeout_ms = u64::try_from(DEFAULT_TIMEOUT.as_millis()).ok();
        Toolset { daemon, client, timeout_ms, spans: vec![command_timeout()] }
    }

    /// The payload with the tools that the daemon runs for clients.
    pub(crate) fn remote_tools(&self) -> Value {
        let available = &self.abilities.web_search;
        json!({ "remote_tools": [{
            "name": WEB_SEARCH,
            "description": WEB_SEARCH_DESCRIPTION,
            "enabled": self.wants_search() && available.is_ok(),
            "available": available.is_ok(),
            "reason_unavailable": available.as_ref().err(),
        }] })
    }

    /// True if the client's own tools are used.
    fn has_client_tools(&self) -> bool {
        self.definition.tools.mode != ToolsMode::Default
    }

    /// True if the selection starts with a tool, which is the client's own, built in or the daemon's.
    fn lists(&self, name: &str, is_clients: bool) -> bool {
        match self.definition.tools.mode {
            ToolsMode::Default | ToolsMode::DefaultPlusClient => self.names(name).unwrap_or(true),
            ToolsMode::ClientOnly => is_clients,
            ToolsMode::Explicit => is_clients || self.names(name).unwrap_or(false),
        }
    }

    /// True if client and user want the daemon's web search.
    fn wants_search(&self) -> bool {
        let (listed, enabled) = (self.lists(WEB_SEARCH, false), self.enables(WEB_SEARCH));
        let listed = match self.definition.tools.mode {
            ToolsMode::Default | ToolsMode::DefaultPlusClient => listed && enabled.unwrap_or(true),
            ToolsMode::ClientOnly | ToolsMode::Explicit => listed || enabled.unwrap_or(false),
        };
        listed && self.allows(WEB_SEARCH)
    }

    /// True if client and user want a tool of the daemon.
    fn wants_own(&self, name: &str) -> bool {
        (self.lists(name, false) || self.enables(name).unwrap_or(false)) && self.allows(name)
    }

    /// True if the client lists a tool as available; `None` if it has no such list.
    fn names(&self, name: &str) -> Option<bool> {
        contains(self.definition.tools.available_tools.as_deref(), name)
    }

    /// True if the client enables a tool of the daemon; `None` if it has no such list.
    fn enables(&self, name: &str) -> Option<bool> {
        contains(self.definition.tools.enabled_remote_tools.as_deref(), name)
    }

    /// True if no setting disables a tool.
    fn allows(&self, name: &str) -> bool {
        let tools = &self.definition.tools;
        let off = |capability| tools.disabled_capabilities.contains(&capability);
        let is_off = match name {
            "browser" => off(Capability::Browser) || !self.settings.browser_automation_enabled,
            WEB_SEARCH => off(Capability::WebSearch),
            LOOK_TOOL => off(Capability::Ocr),
            _ => false,
        };
        let fits = match self.settings.interaction_mode {
            Interaction::Agent => true,
            Interaction::Chat => builtin_tools::in_chat(name),
        };
        fits && !is_off && !tools.disabled_tools.iter().any(|disabled| disabled == name)
    }

    fn tool(&self, name: &str, description: &str, schema: &Value, grounded: bool) -> ClientTool {
        let mut schema = schema.clone();
        if grounded {
            narrow(&mut schema, &self.methods());
        }
        ClientTool {
            name: name.into(),
            description: description.into(),
            schema,
            risk: Risk::Medium,
            // It is not known what a client's own tool does.
            repeatable: false,
            front_end: Some(FRONT_END.into()),
            strict: false,
        }
    }

    /// The ways to find places on the screen; coordinates if there is no other.
    fn methods(&self) -> Vec<Method> {
        let off = |capability| self.definition.tools.disabled_capabilities.contains(&capability);
        let listed = self.definition.runtime.coordinate_methods.as_deref();
        let fits = |method: &Method| {
            let able = match method {
                Method::Manual => true,
                Method::Ocr => self.abilities.ocr && !off(Capability::Ocr),
                Method::Prediction => self.abilities.vision && !off(Capability::Vision),
            };
            able && listed.is_none_or(|listed| listed.contains(method))
        };
        let methods: Vec<Method> = Method::ALL.into_iter().filter(fits).collect();
        if methods.is_empty() { vec![Method::Manual] } else { methods }
    }
}

/// The time limit of commands, from their arguments, unless they run in the background.
fn command_timeout() -> CallTimeout {
    let seconds = [("terminate_after_seconds".to_owned(), COMMAND_SECONDS), ("wait".to_owned(), 0)];
    CallTimeout {
        tool: "run_shell_command".into(),
        seconds: seconds.into(),
        spare: EXTRA_SECONDS,
        unless: Some("run_in_background".into()),
        at_most: TIMEOUT_LIMIT_SECONDS,
    }
}

/// Removes the arguments of other ways to find places from a schema.
fn narrow(schema: &mut Value, methods: &[Method]) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    let words: Vec<&str> = methods.iter().map(|method| method.name()).collect();
    let stays = |name: &str| needs(name).is_none_or(|method| methods.contains(&method));
    properties.retain(|name, _| stays(name));
    for name in ["find_coordinates_by", "drag_to_find_coordinates_by"] {
        let Some(Value::Object(choice)) = properties.get_mut(name) else {
            continue;
        };
        choice.insert("enum".into(), json!(words));
        choice.insert("default".into(), json!(words.first()));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_none_or(stays));
    }
}

/// The way to find places that an argument belongs to.
fn needs(argument: &str) -> Option<Method> {
    match argument.strip_prefix("drag_to_").unwrap_or(argument) {
        "ocr_text" | "candidate_id" => Some(Method::Ocr),
        "source_description" | "destination_description" | "model_name" => Some(Method::Prediction),
        _ => None,
    }
}

/// True if a list contains a name; `None` if there is no list.
fn contains(names: Option<&[String]>, name: &str) -> Option<bool> {
    names.map(|names| names.iter().any(|known| known == name))
}

#[cfg(test)]
mod tests;
