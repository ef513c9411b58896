//! Checks whether the configured MCP servers can be started. Starts none.

use std::path::Path;

use quintet_kernel::port::{Finding, ToolServer, ToolTransport};
use quintet_tools::mcp::{LoginKey, LoginStore as _, sandbox_words};
use quintet_tools::sandbox::Sandbox;

use crate::mcp::{Logins, logins};
use crate::options::Options;

/// The findings; none if no server is configured.
pub(super) fn check(options: &Options, environment: &[(String, String)]) -> Vec<Finding> {
    let path = environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.as_str()).unwrap_or_default();
    let logins = logins(options);
    let one = |server| one(server, path, &logins, &options.sandbox);
    options.mcp.servers.iter().map(one).collect()
}

fn one(server: &ToolServer, path: &str, logins: &Logins, sandbox: &Sandbox) -> Finding {
    let name = &server.name;
    match &server.transport {
        ToolTransport::Stdio { command, .. } => {
            let program = command.first().map(String::as_str).unwrap_or_default();
            if !is_installed(program, path) {
                let remedy = format!("install {program}, or correct mcp.servers.{name}.command");
                let what = format!("{name}: there is no program {program}");
                return Finding::error("mcp", what, remedy);
            }
            match sandbox_words(server, None, sandbox).unwrap_or_else(|| Ok(String::new())) {
                Ok(words) => Finding::ok("mcp", format!("{name}: {program} is there; {words}")),
                Err(why) => {
                    let what = format!("{name}: the sandbox cannot be made: {why}");
                    let remedy =
                        format!("name other paths, or set mcp.servers.{name}.sandbox = false");
                    Finding::error("mcp", what, remedy)
                }
            }
        }
        ToolTransport::Http { url, .. } => {
            let login = LoginKey::of(server).and_then(|key| logins.written(&key));
            let login = if login.is_some() { ", logged in" } else { "" };
            Finding::ok("mcp", format!("{name}: {url}{login}"))
        }
    }
}

fn is_installed(program: &str, path: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}
