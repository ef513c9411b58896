//! Declares the desktop-assistant protocol: its listener, its options and the desktop's tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::toolset::{ClientTool, Toolset};
use serde_json::{Value, json};

use super::serve::{Settings, refuse, router};
use super::tools::{FRONT_END, Risk, default_tools, risk};
use crate::dialect::{
    AccessRules, Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol,
    Service, Services, Shape, Variable,
};

/// The tools of the daemon that every session of the protocol may use.
const MEMORY_TOOLS: [&str; 3] = ["memory_write", "memory_search", "memory_get"];

/// The desktop assistant.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "jarvis",
    listeners: &[ListenerSpec::http("jarvis", "127.0.0.1:8100")],
    options: &[
        ("jarvis.workspace", Shape::Text, None),
        ("jarvis.session_expiry", Shape::Number, Some("86400")),
        ("jarvis.tool_timeout", Shape::Number, Some("300")),
        ("jarvis.tools", Shape::Tables, Some("[]")),
        ("jarvis.daemon_tools", Shape::List, Some("[]")),
        ("jarvis.hosts", Shape::List, Some("[]")),
    ],
    variables: &[Variable {
        name: "JARVIS_GENERAL_PORT",
        key: "listen.jarvis",
        prefix: "127.0.0.1:",
    }],
    configure,
};

#[derive(Debug)]
struct Jarvis {
    settings: Settings,
    hosts: Vec<String>,
}

fn configure(config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    let settings = settings(config)?;
    Ok(Box::new(Jarvis { settings, hosts: config.list("jarvis.hosts") }))
}

fn settings(config: &Config<'_>) -> Result<Settings, ConfigError> {
    Ok(Settings {
        workspace: workspace(config)?,
        expiry: seconds(config, "jarvis.session_expiry"),
        toolset: toolset(config)?,
    })
}

fn workspace(config: &Config<'_>) -> Result<PathBuf, ConfigError> {
    let key = "jarvis.workspace";
    let Some(given) = config.text(key) else { return Ok(config.data_dir.join("workspace")) };
    if !Path::new(given).is_absolute() {
        let source = config.values.source(key);
        return Err(ConfigError(format!(
            "{key} must be an absolute path, not {given:?} ({source})"
        )));
    }
    Ok(given.into())
}

/// A duration in seconds; `None` if it is 0.
fn seconds(config: &Config<'_>, key: &str) -> Option<Duration> {
    config.values.number(key).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

fn toolset(config: &Config<'_>) -> Result<Toolset, ConfigError> {
    let key = "jarvis.tools";
    let error =
        |fault: String| ConfigError(format!("{key}: {fault} ({})", config.values.source(key)));
    let mut client = default_tools();
    for table in config.values.tables(key) {
        let tool = tool(table).map_err(error)?;
        client.retain(|known| known.name != tool.name);
        client.push(tool);
    }
    let mut daemon: Vec<String> = MEMORY_TOOLS.map(Into::into).into();
    daemon.extend(config.list("jarvis.daemon_tools"));
    let timeout = seconds(config, "jarvis.tool_timeout");
    let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    let toolset = Toolset { daemon: Some(daemon), client, timeout_ms, ..Toolset::default() };
    match toolset.validation_error() {
        Some(fault) => Err(error(fault.to_string())),
        None => Ok(toolset),
    }
}

/// One row of `jarvis.tools`.
fn tool(table: Value) -> Result<ClientTool, String> {
    let Value::Object(mut fields) = table else { return Err("each tool must be a table".into()) };
    let mut text = |field: &str| match fields.remove(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{field} must be a string, not {other}")),
    };
    let name = text("name")?.ok_or("each tool needs a name")?;
    let description = text("description")?.unwrap_or_default();
    let level = text("risk")?.unwrap_or_else(|| "risky".into());
    let schema = fields.remove("parameters");
    let schema = schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    if let Some(unknown) = fields.keys().next() {
        return Err(format!(
            "{name}: unknown field {unknown:?}; the fields are name, description, parameters and risk"
        ));
    }
    let risk = Risk::try_from(level).map(risk).map_err(|why| format!("{name}: risk {why}"))?;
    let front_end = Some(FRONT_END.into());
    Ok(ClientTool { name, description, schema, risk, repeatable: false, front_end, strict: false })
}

impl Protocol for Jarvis {
    fn serve(&self, services: &Arc<Services>, _is_on: bool) -> ServedProtocol {
        let service = Service::Http {
            router: router(Arc::clone(services), self.settings.clone()),
            access: AccessRules::new(self.hosts.clone(), refuse),
        };
        ServedProtocol {
            endpoints: vec![Endpoint { listener: "jarvis", service }],
            background: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
