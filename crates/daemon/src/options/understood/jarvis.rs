//! The desktop-assistant protocol.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use quintet_dialects::jarvis::{FRONT_END, Risk, default_tools, risk};
use quintet_kernel::toolset::{ClientTool, Toolset};
use serde_json::{Value, json};

use super::address;
use crate::options::layers::Layers;

/// What every session of the protocol may use of the daemon's own tools.
const OF_MEMORY: [&str; 3] = ["memory_write", "memory_search", "memory_get"];

/// How the protocol is set up.
#[derive(Clone, Debug)]
pub(crate) struct Jarvis {
    pub(crate) address: Option<SocketAddr>,
    /// Whether somebody asked for that address; if not, it is no harm if another program has it.
    pub(crate) wanted: bool,
    pub(crate) hosts: Vec<String>,
    pub(crate) workspace: PathBuf,
    pub(crate) session_expiry: Option<Duration>,
    pub(crate) toolset: Toolset,
}

pub(super) fn understand(layers: &Layers, data_dir: &Path) -> Result<Jarvis> {
    let address = address(layers, "listen.jarvis")?;
    Ok(Jarvis {
        address,
        wanted: layers.source("listen.jarvis") != "default",
        hosts: layers.list("jarvis.hosts").unwrap_or_default(),
        workspace: workspace(layers, data_dir)?,
        session_expiry: seconds(layers, "jarvis.session_expiry"),
        toolset: toolset(layers)?,
    })
}

fn workspace(layers: &Layers, data_dir: &Path) -> Result<PathBuf> {
    let Some(given) = layers.str("jarvis.workspace").filter(|path| !path.is_empty()) else {
        return Ok(data_dir.join("workspace"));
    };
    if !Path::new(given).is_absolute() {
        let source = layers.source("jarvis.workspace");
        bail!("jarvis.workspace must be an absolute path, not {given:?} ({source})");
    }
    Ok(given.into())
}

/// A time; none if it is 0.
fn seconds(layers: &Layers, path: &str) -> Option<Duration> {
    layers.number(path).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

fn toolset(layers: &Layers) -> Result<Toolset> {
    let mut client = default_tools();
    for table in layers.tables("jarvis.tools") {
        let tool = tool(table)
            .with_context(|| format!("jarvis.tools ({})", layers.source("jarvis.tools")))?;
        client.retain(|known| known.name != tool.name);
        client.push(tool);
    }
    let mut daemon: Vec<String> = OF_MEMORY.map(Into::into).into();
    daemon.extend(layers.list("jarvis.daemon_tools").unwrap_or_default());
    let timeout = seconds(layers, "jarvis.tool_timeout");
    let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    let toolset = Toolset { daemon: Some(daemon), client, timeout_ms, ..Toolset::default() };
    match toolset.fault() {
        Some(fault) => bail!("jarvis.tools: {fault} ({})", layers.source("jarvis.tools")),
        None => Ok(toolset),
    }
}

/// One row of `jarvis.tools`.
fn tool(table: Value) -> Result<ClientTool> {
    let Value::Object(mut fields) = table else { bail!("each must be a table") };
    let mut text = |field: &str| match fields.remove(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => bail!("{field} must be a string, not {other}"),
    };
    let name = text("name")?.context("each needs a name")?;
    let description = text("description")?.unwrap_or_default();
    let word = text("risk")?.unwrap_or_else(|| "risky".into());
    let schema = fields.remove("parameters");
    let schema = schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    if let Some(unknown) = fields.keys().next() {
        bail!(
            "{name}: unknown field {unknown:?}; there are name, description, parameters and risk"
        );
    }
    let risk =
        Risk::try_from(word).map(risk).map_err(|why| anyhow::anyhow!("{name}: risk {why}"))?;
    let front_end = Some(FRONT_END.into());
    Ok(ClientTool { name, description, schema, risk, repeatable: false, front_end })
}
