//! Tool servers (MCP), as the page shows them.

use std::path::PathBuf;

use quintet_kernel::port::{
    Error, ServerOrigin, ServerState, Sessions, ToolServerControl, ToolServerInfo,
};
use serde_json::{Value, json};

/// The number of recently used sessions whose folders are searched.
const SESSIONS_LIMIT: usize = 500;
/// The most folders that are searched.
const FOLDERS_LIMIT: usize = 50;

/// All servers, including those of recently used workspaces.
pub(super) async fn list(
    servers: &dyn ToolServerControl,
    sessions: &dyn Sessions,
) -> Result<Value, Error> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for summary in sessions.recent(None, SESSIONS_LIMIT).await? {
        if folders.len() < FOLDERS_LIMIT
            && !summary.workspace.as_os_str().is_empty()
            && !folders.contains(&summary.workspace)
        {
            folders.push(summary.workspace);
        }
    }
    let listed: Vec<Value> = servers.list(folders).await.iter().map(shape).collect();
    Ok(json!({ "servers": listed }))
}

/// A server without its secrets.
fn shape(server: &ToolServerInfo) -> Value {
    let (workspace, session) = match &server.origin {
        ServerOrigin::Configuration => (None, None),
        ServerOrigin::Workspace(folder) => (Some(folder), None),
        ServerOrigin::Session(session) => (None, Some(session.as_str())),
    };
    let (state, reason) = match &server.state {
        ServerState::NotAllowed => ("not_allowed", None),
        ServerState::NotStarted => ("not_started", None),
        ServerState::Starting => ("starting", None),
        ServerState::Ready => ("ready", None),
        ServerState::Failed(reason) => ("failed", Some(reason)),
        ServerState::Stopped => ("stopped", None),
    };
    let tool = |(name, description): &(String, String)| json!({ "name": name, "description": description });
    json!({
        "name": server.name, "workspace": workspace, "session": session,
        "definition": server.definition, "digest": server.digest, "state": state, "reason": reason,
        "tools": server.tools.iter().map(tool).collect::<Vec<_>>(), "problems": server.problems,
    })
}
