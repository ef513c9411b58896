//! Tools of MCP servers: a source of tools that changes while the daemon runs.
//!
//! A server is one connection that is started in the background, started again with growing delays
//! and shared by sessions; [`McpServers`] joins the servers of the configuration, of a workspace's
//! `.mcp.json` (once a person allowed it) and of a session's client into the tools of a session. A call
//! that may have run is never sent again.

mod access;
mod allowed;
mod connection;
mod control;
mod elicitation;
mod http;
mod index;
mod launcher;
mod login;
mod name;
mod offered_tools;
mod pool;
mod process;
mod prompt;
mod result;
mod running_calls;
mod server;
mod server_prompts;
mod tool;
mod tool_list;
mod workspace;

use sha2::{Digest as _, Sha256};

use quintet_kernel::port::{ServerSandbox, ToolServer, ToolTransport};

pub use access::sandbox_words;
pub use allowed::Allowed;
pub use launcher::ServerFolder;
pub use login::{LoginKey, LoginRequest, LoginStore, PendingLogin};
pub use pool::{McpServers, McpSettings, ServerReport};
pub use workspace::{CONNECT, WorkspaceServers, described};

/// The command or the address; neither variables nor headers, which are secrets.
pub fn place(server: &ToolServer) -> String {
    match &server.transport {
        ToolTransport::Stdio { command, .. } => command.join(" "),
        ToolTransport::Http { url, .. } => url.clone(),
    }
}

/// Names a definition: two servers of the same digest are the same to us.
pub fn digest(server: &ToolServer, folder: &std::path::Path) -> String {
    let mut hash = Sha256::new();
    let mut field = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    field(&server.name);
    field(&folder.to_string_lossy());
    match &server.transport {
        ToolTransport::Stdio { command, env, sandbox } => {
            field("stdio");
            field(&command.len().to_string());
            command.iter().for_each(|word| field(word));
            for (name, value) in env {
                field(name);
                field(value);
            }
            // The digests of what people allowed before there was a choice stay the same.
            if *sandbox != ServerSandbox::default() {
                let ServerSandbox { enabled, network, read, write } = sandbox;
                field(&format!("sandbox {enabled} {network} {}", read.len()));
                read.iter().chain(write).for_each(|path| field(&path.to_string_lossy()));
            }
        }
        ToolTransport::Http { url, headers } => {
            field("http");
            field(url);
            for (name, value) in headers {
                field(name);
                field(value);
            }
        }
    }
    hex::encode(hash.finalize())
}
