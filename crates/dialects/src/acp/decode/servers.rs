//! MCP servers that an editor brings for a session.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// An MCP server, as the editor describes it.
#[derive(Clone, PartialEq, Eq)]
pub(in super::super) struct McpServer {
    pub(in super::super) name: String,
    pub(in super::super) transport: McpTransport,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub(in super::super) enum McpTransport {
    /// A process: the program with its arguments, and variables of its environment.
    Stdio { command: Vec<String>, env: BTreeMap<String, String> },
    /// Streamable HTTP: the address, and headers of every request.
    Http { url: String, headers: BTreeMap<String, String> },
    /// A way that is not offered.
    Unsupported,
}

impl fmt::Debug for McpServer {
    // Variables and headers hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            McpTransport::Stdio { .. } => "stdio",
            McpTransport::Http { .. } => "http",
            McpTransport::Unsupported => "unsupported",
        };
        write!(f, "{}: {transport}", self.name)
    }
}

/// The servers of a request. Editors leave the member out, or send servers that were not offered.
pub(super) fn servers(params: &Value) -> Vec<McpServer> {
    params["mcpServers"].as_array().into_iter().flatten().map(server).collect()
}

fn server(server: &Value) -> McpServer {
    let text = |name: &str| server[name].as_str().map(str::to_owned);
    let transport = match server["type"].as_str() {
        None | Some("stdio") => text("command").map(|program| {
            let args = server["args"].as_array().into_iter().flatten();
            let args = args.filter_map(|arg| arg.as_str().map(str::to_owned));
            let command = [program].into_iter().chain(args).collect();
            McpTransport::Stdio { command, env: pairs(&server["env"]) }
        }),
        Some("http") => {
            text("url").map(|url| McpTransport::Http { url, headers: pairs(&server["headers"]) })
        }
        Some(_) => None,
    };
    McpServer {
        name: text("name").unwrap_or_else(|| "unnamed".to_owned()),
        transport: transport.unwrap_or(McpTransport::Unsupported),
    }
}

/// A list of objects with `name` and `value`.
fn pairs(list: &Value) -> BTreeMap<String, String> {
    let pair = |pair: &Value| {
        Some((pair["name"].as_str()?.to_owned(), pair["value"].as_str()?.to_owned()))
    };
    list.as_array().into_iter().flatten().filter_map(pair).collect()
}
