//! A workspace's own servers, in its `.mcp.json`: read, but not started before a person allowed it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use quintet_kernel::port::{
    BoxFuture, Invocation, ServerSandbox, Tool, ToolContext, ToolOutput, ToolServer, ToolTransport,
};
use quintet_kernel::tool::{
    Assessment, CallSubject, Ending, Outcome, Placement, Risk, ToolKind, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::access::sandbox_words;
use super::pool::Pool;
use super::server::Status;
use crate::sandbox::{Mode, Sandbox};
use crate::{confined_fs, show};

/// The tool that starts the servers of a workspace. It is never run without a person's approval.
pub const CONNECT: &str = "connect_mcp_servers";

const FILE: &str = ".mcp.json";
const FILE_LIMIT: u64 = 256 * 1024;
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long the tool waits for the servers that it starts.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// The most that a person is shown of all definitions, in bytes. What cannot be shown is not started.
const SHOWN_LIMIT: usize = 16 * 1024;

/// A definition on one line, as a person reads it before they allow it: it contains no invisible
/// characters, and different definitions never look the same.
pub fn described(server: &ToolServer) -> String {
    let mut words = vec![format!("{}:", word(&server.name))];
    match &server.transport {
        ToolTransport::Stdio { command, env, .. } => {
            words.extend(env.iter().map(|(name, value)| format!("{}={}", word(name), word(value))));
            words.extend(command.iter().map(|text| word(text)));
        }
        ToolTransport::Http { url, .. } => words.push(word(url)),
    }
    words.join(" ")
}

/// A word as it is, or in quotes with escapes if anything in it could mislead.
fn word(text: &str) -> String {
    let is_plain =
        |c: char| c.is_alphanumeric() && c.escape_debug().count() == 1 || c.is_ascii_graphic();
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

/// The servers that a workspace names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceServers {
    /// Servers that can be started.
    pub servers: Vec<ToolServer>,
    /// What is wrong with the others, or with the file.
    pub problems: Vec<String>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl WorkspaceServers {
    /// Reads a workspace's file; nothing if there is none.
    pub fn read(workspace: &Path) -> Option<Self> {
        let mut text = String::new();
        let file = confined_fs::open(workspace, Path::new(FILE)).ok()?;
        let read = file.take(FILE_LIMIT + 1).read_to_string(&mut text);
        let fault =
            |why: &str| Self { problems: vec![format!("{FILE}: {why}")], ..Self::default() };
        Some(match read {
            Err(error) => fault(&error.to_string()),
            Ok(_) if text.len() as u64 > FILE_LIMIT => fault("is too long"),
            Ok(_) => match serde_json::from_str::<Value>(&text) {
                Err(error) => fault(&format!("is not JSON: {error}")),
                Ok(value) => Self::parse(&value),
            },
        })
    }

    fn parse(file: &Value) -> Self {
        let mut all = Self::default();
        let Some(entries) = file["mcpServers"].as_object() else {
            all.problems.push(format!("{FILE}: has no table \"mcpServers\""));
            return all;
        };
        let mut room = SHOWN_LIMIT;
        for (name, entry) in entries {
            let fits = |server: ToolServer| {
                let left = room.checked_sub(described(&server).len());
                left.map(|left| (server, left)).ok_or("is too long to be shown to a person")
            };
            match server(name, entry).and_then(|server| fits(server).map_err(str::to_owned)) {
                Ok((server, left)) => {
                    room = left;
                    all.servers.push(server);
                }
                Err(why) => all.problems.push(format!("{FILE}: {}: {why}", word(name))),
            }
        }
        all
    }
}

fn server(name: &str, entry: &Value) -> Result<ToolServer, String> {
    let entry = Entry::deserialize(entry).map_err(|error| error.to_string())?;
    let kind = entry.kind.as_deref();
    let transport = match (entry.command, entry.url) {
        (Some(command), None) if matches!(kind, None | Some("stdio")) => {
            let command = std::iter::once(command).chain(entry.args).collect();
            ToolTransport::Stdio { command, env: entry.env, sandbox: ServerSandbox::default() }
        }
        (None, Some(url)) if matches!(kind, None | Some("http" | "streamable-http")) => {
            ToolTransport::Http { url, headers: entry.headers }
        }
        (None, Some(_)) => return Err("only streamable HTTP is spoken to a \"url\"".to_owned()),
        _ => return Err("needs either \"command\" or \"url\"".to_owned()),
    };
    Ok(ToolServer { name: name.to_owned(), transport, timeout: TIMEOUT })
}

/// Starts the servers of a workspace, once a person allowed it.
pub(super) struct ConnectServers {
    spec: Arc<ToolSpec>,
    workspace: PathBuf,
    /// The servers that wait for the user's approval.
    servers: Vec<ToolServer>,
    pool: Weak<Pool>,
}

impl ConnectServers {
    pub(super) fn new(workspace: PathBuf, servers: Vec<ToolServer>, pool: Weak<Pool>) -> Self {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let description = format!(
            "Start the MCP servers of this workspace, which bring tools of their own: {}. The user \
             is asked first. Call this only if such tools are needed.",
            names.join(", ")
        );
        // An answer that is remembered for the same arguments counts for the same servers only.
        let schema = json!({
            "type": "object",
            "properties": { "digest": { "type": "string", "enum": [digest(&workspace, &servers)] } },
            "required": ["digest"],
            "additionalProperties": false,
        });
        let spec = ToolSpec {
            name: CONNECT.to_owned(),
            description,
            schema,
            kind: ToolKind::Exec,
            placement: Placement::Daemon,
            strict: false,
        };
        Self { spec: Arc::new(spec), workspace, servers, pool }
    }

    /// What a person reads before they decide.
    fn preview(&self) -> String {
        let sandbox = self.sandbox();
        let line = |server: &ToolServer| {
            let words =
                sandbox_words(server, Some(&self.workspace), &sandbox).map(|words| match words {
                    Ok(words) => format!("\n  {words}"),
                    Err(why) => format!("\n  cannot be started in the sandbox: {why}"),
                });
            described(server) + &words.unwrap_or_default()
        };
        let lines: Vec<String> = self.servers.iter().map(line).collect();
        let place = if sandbox.mode == Mode::Off {
            "outside the sandbox"
        } else {
            "in a sandbox that may write in this workspace"
        };
        format!("{FILE} of this workspace starts, {place}\n{}", lines.join("\n"))
    }

    /// The sandbox that servers are started in.
    fn sandbox(&self) -> Sandbox {
        self.pool.upgrade().map(|pool| pool.sandbox().clone()).unwrap_or_default()
    }

    async fn start(&self) -> ToolOutput {
        let Some(pool) = self.pool.upgrade() else {
            return Outcome::failure("the daemon is shutting down").into();
        };
        let started = match pool.allow(&self.workspace, &self.servers).await {
            Ok(started) => started,
            Err(why) => return Outcome::failure(why).into(),
        };
        let settle = started.iter().map(|server| async move {
            let name = server.name();
            match server.settled(START_TIMEOUT).await {
                Status::Ready(_) => {
                    format!("{name}: {}", show::count(server.tools().len(), "tool"))
                }
                Status::Starting => format!("{name}: still starting"),
                Status::Failed { reason, .. } => format!("{name}: {reason}"),
                Status::Stopped => format!("{name}: stopped"),
            }
        });
        let lines = futures_util::future::join_all(settle).await;
        Outcome::success(lines.join("\n")).into()
    }
}

fn digest(workspace: &Path, servers: &[ToolServer]) -> String {
    let mut hash = Sha256::new();
    servers.iter().for_each(|server| hash.update(super::digest(server, workspace)));
    hex::encode(hash.finalize())[..16].to_owned()
}

impl Tool for ConnectServers {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::clone(&self.spec)
    }

    fn assess<'a>(&'a self, _call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let is_off = self.sandbox().mode == Mode::Off;
        let place = if is_off { ", outside the sandbox" } else { "" };
        Box::pin(std::future::ready(Assessment {
            risk: Risk::High,
            reasons: vec![format!("starts programs that the workspace names{place}")],
            reversible: false,
            preview: self.preview(),
            subject: CallSubject { opaque: true, ..CallSubject::default() },
            settled: None,
        }))
    }

    fn run(&self, _call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            tokio::select! {
                output = self.start() => output,
                () = context.cancel.cancelled() => {
                    Outcome::ended(Ending::Cancelled, "cancelled").into()
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
