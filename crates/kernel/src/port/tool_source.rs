//! Tools that come and go while the daemon runs, and the servers that clients bring for a session.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Tool;
use crate::dynamic_tools::DynamicTools;
use crate::id::SessionId;

/// A source of tools that may change at any time.
pub trait ToolSource: Send + Sync {
    /// The tools of a session that works in this folder, as they are now. Must return at once; the same
    /// tools are the same `Arc`.
    fn tools(&self, session: &SessionId, workspace: &Path) -> Arc<DynamicTools>;
    /// The tool of that name, if the session has it.
    fn find(&self, session: &SessionId, workspace: &Path, name: &str) -> Option<Arc<dyn Tool>>;
}

/// Inbound: tool servers that a client brings for one session.
pub trait SessionToolServers: Send + Sync {
    /// Replaces the servers that clients brought for this session, and begins to start the new ones
    /// without waiting for them; processes work in the workspace. An empty list stops all of them.
    /// Servers are not kept across restarts.
    fn join(&self, session: &SessionId, workspace: &Path, servers: Vec<ToolServer>);
}

/// A tool server (MCP), as somebody defines it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolServer {
    /// The name, which its tools' names begin with.
    pub name: String,
    /// How to reach it.
    pub transport: ToolTransport,
    /// How long one call may take without a sign of progress.
    pub timeout: Duration,
}

/// How a tool server is reached.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolTransport {
    /// A process that is spoken to on its standard input and output.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Variables besides the few that every process gets.
        env: BTreeMap<String, String>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

impl std::fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ToolTransport {
    // Variables and headers hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "Stdio",
            Self::Http { .. } => "Http",
        })
    }
}
