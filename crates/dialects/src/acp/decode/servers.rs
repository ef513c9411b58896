//! MCP servers that an editor provides for a session.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quintet_kernel::port::{ToolServer, ToolTransport};
use serde_json::Value;

/// How long one call of such a server may take without a sign of progress.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The servers that an editor provides.
#[derive(Clone, Default, PartialEq, Eq)]
pub(in super::super) struct BroughtServers {
    pub(in super::super) servers: Vec<ToolServer>,
    /// The names of those that are reached in a way that is not offered.
    pub(in super::super) unsupported: Vec<String>,
}

impl fmt::Debug for BroughtServers {
    // Variables and headers hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.servers.iter().map(|server| match server.transport {
            ToolTransport::Stdio { .. } => format!("{}: stdio", server.name),
            ToolTransport::Http { .. } => format!("{}: http", server.name),
        });
        let unsupported = self.unsupported.iter().map(|name| format!("{name}: unsupported"));
        write!(f, "[{}]", named.chain(unsupported).collect::<Vec<_>>().join(", "))
    }
}

/// The servers of a request. Editors leave the member out, or send servers that were not offered.
pub(super) fn servers(params: &Value) -> BroughtServers {
    let mut brought = BroughtServers::default();
    for server in params["mcpServers"].as_array().into_iter().flatten() {
        let name = server["name"].as_str().unwrap_or("unnamed").to_owned();
        match transport(server) {
            Some(transport) => {
                brought.servers.push(ToolServer { name, transport, timeout: CALL_TIMEOUT });
            }
            None => brought.unsupported.push(name),
        }
    }
    brought
}

fn transport(server: &Value) -> Option<ToolTransport> {
    let text = |name: &str| server[name].as_str().map(str::to_owned);
    match server["type"].as_str() {
        None | Some("stdio") => {
            let args = server["args"].as_array().into_iter().flatten();
            let args = args.filter_map(|arg| arg.as_str().map(str::to_owned));
            let command = [text("command")?].into_iter().chain(args).collect();
            Some(ToolTransport::Stdio { command, env: pairs(&server["env"]) })
        }
        Some("http") => {
            Some(ToolTransport::Http { url: text("url")?, headers: pairs(&server["headers"]) })
        }
        Some(_) => None,
    }
}

/// A list of objects with `name` and `value`.
fn pairs(list: &Value) -> BTreeMap<String, String> {
    let pair = |pair: &Value| {
        Some((pair["name"].as_str()?.to_owned(), pair["value"].as_str()?.to_owned()))
    };
    list.as_array().into_iter().flatten().filter_map(pair).collect()
}
