//! Tools that change while the daemon runs, and tool servers that clients provide for a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{BoxFuture, Tool};
use crate::dynamic_tools::DynamicTools;
use crate::id::SessionId;

/// A source of tools that may change at any time.
pub trait ToolSource: Send + Sync {
    /// The current tools of a session in this folder. Must not block; returns the same `Arc` as long as the
    /// tools do not change.
    fn tools(&self, session: &SessionId, workspace: &Path) -> Arc<DynamicTools>;
    /// The tool of that name, if the session has it.
    fn find(&self, session: &SessionId, workspace: &Path, name: &str) -> Option<Arc<dyn Tool>>;
}

/// Inbound: tool servers that a client provides for one session.
pub trait SessionToolServers: Send + Sync {
    /// Replaces the servers that clients provided for this session, and starts the new ones without waiting
    /// for them; processes work in the workspace. An empty list stops all of them.
    /// Servers are not kept across restarts.
    fn join(&self, session: &SessionId, workspace: &Path, servers: Vec<ToolServer>);
}

/// Inbound: the state of tool servers for people, and which servers of a workspace they allow.
pub trait ToolServerControl: Send + Sync {
    /// The servers of the configuration, of clients and of these folders. Starts none.
    fn list(&self, workspaces: Vec<PathBuf>) -> BoxFuture<'_, Vec<ToolServerInfo>>;
    /// Allows servers that a workspace defines, named by their digests, and starts them. Fails with
    /// a message for people, and allows none, if the workspace no longer defines all of them.
    fn allow(&self, workspace: PathBuf, digests: Vec<String>) -> BoxFuture<'_, Result<(), String>>;
    /// Revokes an approval and stops the servers that ran by it. Fails with a message for people if
    /// the revocation cannot be stored.
    fn disallow(
        &self,
        workspace: PathBuf,
        digests: Vec<String>,
    ) -> BoxFuture<'_, Result<(), String>>;
}

/// A tool server as people see it. Contains no secrets of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolServerInfo {
    /// The name.
    pub name: String,
    /// Where it is defined.
    pub origin: ServerOrigin,
    /// The command or the address. For a workspace's server, everything that a person allows, with
    /// invisible characters made visible.
    pub definition: String,
    /// Identifies the definition: any change to the definition changes the digest.
    pub digest: String,
    /// Whether it runs.
    pub state: ServerState,
    /// The names and descriptions of its tools, as it listed them last.
    pub tools: Vec<(String, String)>,
    /// Problems with tools that were left out, or with the file that defines the server.
    pub problems: Vec<String>,
}

/// Where a tool server is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    /// In the configuration.
    Configuration,
    /// In a file of a workspace.
    Workspace(PathBuf),
    /// A client provided the server for a session.
    Session(SessionId),
}

/// Whether a tool server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// The server is not allowed yet.
    NotAllowed,
    /// No session has needed it since the daemon started.
    NotStarted,
    /// The connection is being made.
    Starting,
    /// The server is connected; its tools can be called.
    Ready,
    /// The last attempt failed, for this reason; it will be retried.
    Failed(String),
    /// The server was stopped.
    Stopped,
}

/// The definition of a tool server (MCP).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolServer {
    /// The name, which is the prefix of its tools' names.
    pub name: String,
    /// How to reach it.
    pub transport: ToolTransport,
    /// Maximum time of a call without a sign of progress.
    pub timeout: Duration,
}

/// How a tool server is reached.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolTransport {
    /// A process that communicates on its standard input and output.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Variables in addition to the few that every process gets.
        env: BTreeMap<String, String>,
        /// What the process may access.
        sandbox: ServerSandbox,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

/// What the process of a tool server may access beyond its own folder and what its arguments name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerSandbox {
    /// False if the process runs without a sandbox.
    pub enabled: bool,
    /// Whether the process may use the network of the machine.
    pub network: bool,
    /// Readable paths; absolute.
    pub read: Vec<PathBuf>,
    /// Readable and writable paths; absolute.
    pub write: Vec<PathBuf>,
}

impl Default for ServerSandbox {
    /// A sandbox with the network, which most servers need.
    fn default() -> Self {
        Self { enabled: true, network: true, read: Vec::new(), write: Vec::new() }
    }
}

impl std::fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ToolTransport {
    // Variables and headers may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "Stdio",
            Self::Http { .. } => "Http",
        })
    }
}
