//! MCP servers that an editor provides for a session.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quintet_kernel::port::{ServerSandbox, ToolServer, ToolTransport};
use serde_json::Value;

/// Time that a call of such a server may take without progress.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The MCP servers that an editor provides.
#[derive(Clone, Default, PartialEq, Eq)]
pub(in super::super) struct ProvidedServers {
    pub(in super::super) servers: Vec<ToolServer>,
    /// The names of servers with an unsupported transport.
    pub(in super::super) unsupported: Vec<String>,
}

impl fmt::Debug for ProvidedServers {
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

/// Decodes the servers of a request. Some editors leave the member out, or use transports that were not
/// offered.
pub(super) fn servers(params: &Value) -> ProvidedServers {
    let mut provided = ProvidedServers::default();
    for server in params["mcpServers"].as_array().into_iter().flatten() {
        let name = server["name"].as_str().unwrap_or("unnamed").to_owned();
        match transport(server) {
            Some(transport) => {
                provided.servers.push(ToolServer { name, transport, timeout: CALL_TIMEOUT });
            }
            None => provided.unsupported.push(name),
        }
    }
    provided
}

fn transport(server: &Value) -> Option<ToolTransport> {
    let text = |name: &str| server[name].as_str().map(str::to_owned);
    match server["type"].as_str() {
        None | Some("stdio") => {
            let args = server["args"].as_array().into_iter().flatten();
            let args = args.filter_map(|arg| arg.as_str().map(str::to_owned));
            let command = [text("command")?].into_iter().chain(args).collect();
            let (env, sandbox) = (pairs(&server["env"]), ServerSandbox::default());
            Some(ToolTransport::Stdio { command, env, sandbox })
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
