//! What people see of the servers, and what they allow.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::SessionId;
use quintet_kernel::port::{
    BoxFuture, ServerOrigin, ServerState, ToolServer, ToolServerControl, ToolServerInfo,
};

use super::pool::{McpServers, Pool, lock, real};
use super::server::{Core, Status};
use super::workspace::{WorkspaceServers, described};
use super::{digest, place};

impl ToolServerControl for McpServers {
    fn list(&self, workspaces: Vec<PathBuf>) -> BoxFuture<'_, Vec<ToolServerInfo>> {
        let pool = Arc::clone(&self.0);
        Box::pin(async move {
            let listed = tokio::task::spawn_blocking(move || pool.list(&workspaces)).await;
            listed.unwrap_or_default()
        })
    }

    fn allow(&self, workspace: PathBuf, digests: Vec<String>) -> BoxFuture<'_, Result<(), String>> {
        let pool = &self.0;
        Box::pin(async move {
            let folder = workspace.clone();
            let found = tokio::task::spawn_blocking(move || defined(&folder, &digests)).await;
            let servers = found.map_err(|error| error.to_string())??;
            pool.allow(&workspace, &servers).await.map(drop)
        })
    }

    fn disallow(
        &self,
        workspace: PathBuf,
        digests: Vec<String>,
    ) -> BoxFuture<'_, Result<(), String>> {
        let pool = Arc::clone(&self.0);
        Box::pin(async move {
            let done =
                tokio::task::spawn_blocking(move || pool.disallow_now(&workspace, &digests)).await;
            let done = done.map_err(|error| error.to_string())?;
            done.map_err(|error| format!("it could not be written down: {error}"))
        })
    }
}

/// The servers of these digests that a workspace defines. Fails if it does not define all of them.
fn defined(workspace: &Path, digests: &[String]) -> Result<Vec<ToolServer>, String> {
    let (file, folder) = (WorkspaceServers::read(workspace).unwrap_or_default(), real(workspace));
    let named = |server: &ToolServer| digests.contains(&digest(server, &folder));
    let servers: Vec<ToolServer> = file.servers.into_iter().filter(named).collect();
    if digests.is_empty() || servers.len() != digests.len() {
        return Err("the servers of the workspace are not those that were shown".to_owned());
    }
    Ok(servers)
}

impl Pool {
    fn list(&self, workspaces: &[PathBuf]) -> Vec<ToolServerInfo> {
        let configured = self.configured.iter().map(|server| {
            let core = server.core();
            let definition = place(&core.definition);
            running(core, ServerOrigin::Configuration, definition)
        });
        let mut all: Vec<ToolServerInfo> = configured.collect();
        for workspace in workspaces {
            all.extend(self.of_workspace(workspace));
        }
        all.extend(self.brought());
        all
    }

    /// The servers that a workspace's file defines now, and what is wrong with the file.
    fn of_workspace(&self, workspace: &Path) -> Vec<ToolServerInfo> {
        let Some(file) = WorkspaceServers::read(workspace) else { return Vec::new() };
        let (folder, allowed) = (real(workspace), self.allowed.read());
        let cores = self.running_in(workspace);
        let origin = || ServerOrigin::Workspace(workspace.to_owned());
        let mut all: Vec<ToolServerInfo> = Vec::new();
        for server in &file.servers {
            let digest = digest(server, &folder);
            let is_allowed = allowed.contains(&digest);
            let core = cores.iter().find(|core| is_allowed && core.digest == digest);
            all.push(match core {
                Some(core) => running(core, origin(), described(server)),
                None => ToolServerInfo {
                    name: server.name.clone(),
                    origin: origin(),
                    definition: described(server),
                    digest,
                    state: if is_allowed {
                        ServerState::NotStarted
                    } else {
                        ServerState::NotAllowed
                    },
                    tools: Vec::new(),
                    problems: Vec::new(),
                },
            });
        }
        if !file.problems.is_empty() {
            all.push(broken(origin(), file.problems));
        }
        all
    }

    fn brought(&self) -> Vec<ToolServerInfo> {
        let sessions: Vec<(SessionId, Arc<Core>)> = {
            let sessions = lock(&self.sessions);
            let each = sessions.iter().flat_map(|(session, servers)| {
                servers.iter().map(|server| (session.clone(), Arc::clone(server.core())))
            });
            each.collect()
        };
        let shown = sessions.into_iter().map(|(session, core)| {
            let definition = place(&core.definition);
            running(&core, ServerOrigin::Session(session), definition)
        });
        shown.collect()
    }
}

/// A server that was started.
fn running(core: &Core, origin: ServerOrigin, definition: String) -> ToolServerInfo {
    let state = match core.status() {
        Status::Starting => ServerState::Starting,
        Status::Ready(_) => ServerState::Ready,
        Status::Failed { reason, .. } => ServerState::Failed(reason),
        Status::Stopped => ServerState::Stopped,
    };
    let tool = |tool: &super::tool_list::ListedTool| (tool.name.clone(), tool.description.clone());
    ToolServerInfo {
        name: core.name().to_owned(),
        origin,
        definition,
        digest: core.digest.clone(),
        state,
        tools: core.tools().iter().map(tool).collect(),
        problems: core.problems(),
    }
}

/// Entries of a file that define no server.
fn broken(origin: ServerOrigin, problems: Vec<String>) -> ToolServerInfo {
    ToolServerInfo {
        name: String::new(),
        origin,
        definition: String::new(),
        digest: String::new(),
        state: ServerState::NotAllowed,
        tools: Vec::new(),
        problems,
    }
}
