//! The prompts of all servers, as people send them.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::SessionId;
use quintet_kernel::port::{BoxFuture, PromptContent, ServerPrompt, ServerPrompts};

use super::pool::McpServers;
use super::prompt::{self, ListedPrompt};
use super::server::Core;

impl ServerPrompts for McpServers {
    fn list(&self, session: Option<&SessionId>, workspace: &Path) -> Vec<ServerPrompt> {
        if !workspace.as_os_str().is_empty() {
            self.0.refresh(workspace);
        }
        let servers = self.0.servers(session, workspace);
        let of = |server: &Arc<Core>| {
            let named = |prompt: ListedPrompt| ServerPrompt {
                name: prompt_name(server, &prompt),
                description: prompt.description,
                arguments: prompt.arguments,
            };
            server.prompts().into_iter().map(named).collect::<Vec<_>>()
        };
        servers.iter().flat_map(of).collect()
    }

    fn fill<'a>(
        &'a self,
        session: Option<&'a SessionId>,
        workspace: &'a Path,
        name: &'a str,
        arguments: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PromptContent>, String>> {
        Box::pin(async move {
            let servers = self.0.servers(session, workspace);
            let mut all = servers.iter().flat_map(|server| {
                server.prompts().into_iter().map(move |prompt| (server, prompt))
            });
            let found = all.find(|(server, prompt)| prompt_name(server, prompt) == name);
            let (server, prompt) = found.ok_or_else(|| format!("there is no prompt {name}"))?;
            let declared = &prompt.arguments;
            let given = prompt::arguments(declared, arguments);
            let given = given.map_err(|why| format!("/{name}: {why}"))?;
            let connection = server.ready().await?;
            let filled = connection.prompt(&server.definition, &prompt.name, given).await;
            let contents = filled.and_then(|mut answer| prompt::contents(&mut answer));
            let mut contents = contents.map_err(|why| format!("/{name}: {why}"))?;
            // What a prompt has no argument for is said after it.
            if declared.is_empty() && !arguments.is_empty() {
                contents.push(PromptContent::Text(arguments.to_owned()));
            }
            Ok(contents)
        })
    }

    fn changes(&self) -> u64 {
        *self.0.prompt_changes.borrow()
    }

    fn changed(&self, since: u64) -> BoxFuture<'_, ()> {
        let mut changes = self.0.prompt_changes.subscribe();
        // The sender lives as long as this does.
        Box::pin(async move { drop(changes.wait_for(|changes| *changes != since).await) })
    }
}

fn prompt_name(server: &Core, prompt: &ListedPrompt) -> String {
    format!("{}:{}", server.name(), prompt.name)
}
