//! `quintet mcp`: manages the MCP servers whose tools are offered to models.

mod config_file;
mod login;
mod logins;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use futures_util::future::join_all;
use quintet_kernel::port::{ServerSandbox, ToolServer};
use quintet_tools::mcp::{
    Allowed, LoginKey, LoginStore as _, McpServers, ServerFolder, WorkspaceServers, described,
    digest, place, sandbox_words,
};

use crate::accounts::Vault;
use crate::assemble::mcp_settings;
use crate::cli::{AddServer, Flags, Mcp};
use crate::options::{self, Options};
use config_file::Entry;

pub(crate) use logins::Logins;

/// The listener that `quintet mcp` attaches to.
pub(crate) const LISTENER: &str = "mcp_stdio";

/// Maximum time for a server to answer `quintet mcp test`: package runners download first.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time for a server over HTTP to report, for a list, whether it needs a login.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);

/// Executes the subcommand.
pub(crate) fn main(verb: Mcp) -> Result<()> {
    match verb {
        Mcp::List { flags } => list(&flags),
        Mcp::Add(server) => add(server),
        Mcp::Remove { flags, name } => remove(&flags, &name),
        Mcp::Login(login) => login::login(&login),
        Mcp::Logout { flags, name } => login::logout(&options::read(&flags)?, &name),
        Mcp::Test { flags, name } => test(&flags, &name),
        Mcp::Allow { flags, folder } => allow(&flags, folder),
    }
}

fn add(server: AddServer) -> Result<()> {
    let AddServer { flags, name, url, env, header, timeout, command, .. } = server;
    // The configuration knows `~` as well, which a shell leaves in `--read=~/x`.
    let absolute = |path: &PathBuf| {
        if path.starts_with("~") { Ok(path.clone()) } else { std::path::absolute(path) }
    };
    let sandbox = ServerSandbox {
        enabled: !server.no_sandbox,
        network: !server.no_network,
        read: server.read.iter().map(absolute).collect::<Result<_, _>>()?,
        write: server.write.iter().map(absolute).collect::<Result<_, _>>()?,
    };
    let (env, headers) = (pairs(&env)?, pairs(&header)?);
    let entry = Entry { command, url, env, headers, timeout_seconds: timeout, sandbox };
    let check = |next: &Path| {
        let config = Some(next.to_owned());
        options::read_closed(&Flags { config, ..flags.clone() }).map(drop)
    };
    config_file::add(file(&flags)?, &name, &entry, check)?;
    let options = options::read_closed(&flags)?;
    let added = options.mcp.servers.iter().find(|server| server.name == name);
    let words = added.map(|server| in_brackets(server, None, &options)).unwrap_or_default();
    Ok(writeln!(std::io::stdout(), "added {name}{words}")?)
}

/// The sandbox of a server, as it is added to a line about the server.
fn in_brackets(server: &ToolServer, workspace: Option<&Path>, options: &Options) -> String {
    match sandbox_words(server, workspace, &options.sandbox) {
        None => String::new(),
        Some(Ok(words)) => format!(" ({words})"),
        Some(Err(why)) => format!(" (cannot be started in the sandbox: {why})"),
    }
}

fn file(flags: &Flags) -> Result<&Path> {
    flags.config.as_deref().context("name the configuration file with --config FILE")
}

fn pairs(given: &[String]) -> Result<Vec<(String, String)>> {
    let pair = |text: &String| {
        // A value may be a secret, so it is not shown.
        let (name, value) = text.split_once('=').context("a NAME=VALUE has no \"=\"")?;
        Ok((name.to_owned(), value.to_owned()))
    };
    given.iter().map(pair).collect()
}

fn list(flags: &Flags) -> Result<()> {
    let options = options::read(flags)?;
    let words = login_notes(&options)?;
    let mut stdout = std::io::stdout().lock();
    for (server, word) in options.mcp.servers.iter().zip(words) {
        let sandbox = in_brackets(server, None, &options);
        writeln!(stdout, "{:<20} {}{word}{sandbox}", server.name, place(server))?;
    }
    let here = std::env::current_dir()?.canonicalize()?;
    let Some(WorkspaceServers { servers, problems }) = WorkspaceServers::read(&here) else {
        return Ok(());
    };
    let allowed = Allowed::new(&options.data_dir).read();
    for server in servers {
        let is_allowed = allowed.contains(&digest(&server, &here));
        let word = if is_allowed { "allowed" } else { "not allowed" };
        let sandbox = in_brackets(&server, Some(&here), &options);
        writeln!(stdout, "{} (.mcp.json, {word}){sandbox}", described(&server))?;
    }
    for problem in problems {
        writeln!(stdout, "{problem}")?;
    }
    Ok(())
}

/// The login note of each server.
fn login_notes(options: &Options) -> Result<Vec<String>> {
    let store = Arc::new(logins(options));
    let word = async |server: &ToolServer| match LoginKey::of(server) {
        None => String::new(),
        Some(key) if store.written(&key).is_some() => " (logged in)".to_owned(),
        Some(key) if McpServers::needs_login(server, store.clone(), LIST_TIMEOUT).await => {
            format!(" (needs a login: quintet mcp login {})", key.name)
        }
        Some(_) => String::new(),
    };
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(threads.block_on(join_all(options.mcp.servers.iter().map(word))))
}

/// The logins of the data directory.
pub(crate) fn logins(options: &Options) -> Logins {
    Logins::new(&options.data_dir, Arc::new(Vault::new(&options.data_dir)))
}

/// Removes a server from the file, and deletes its login.
fn remove(flags: &Flags, name: &str) -> Result<()> {
    // A server with an invalid definition can be removed, too.
    let options = options::read_closed(flags).ok();
    config_file::remove(file(flags)?, name)?;
    let Some(options) = options else { return Ok(()) };
    let server = options.mcp.servers.iter().find(|server| server.name == name);
    let key = server.and_then(LoginKey::of);
    key.map_or(Ok(()), |key| login::forget(&options, &key).map(drop))
}

fn test(flags: &Flags, name: &str) -> Result<()> {
    let options = options::read(flags)?;
    let (server, folder) = find(&options, name)?;
    let sandbox = sandbox_words(&server, folder.workspace(), &options.sandbox);
    let sandbox = sandbox.and_then(Result::ok);
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let settings = mcp_settings(&options, Arc::new(logins(&options)));
    let probe = McpServers::probe(server, folder, &settings, TEST_TIMEOUT);
    let report = threads.block_on(probe).map_err(|why| anyhow!("{name}: {why}"))?;
    let mut stdout = std::io::stdout().lock();
    let title = report.title.unwrap_or_else(|| name.to_owned());
    writeln!(stdout, "{title}: {} tools", report.tools.len())?;
    if let Some(words) = sandbox {
        writeln!(stdout, "{words}")?;
    }
    for (tool, description) in report.tools {
        writeln!(stdout, "{tool:<24} {}", description.lines().next().unwrap_or_default())?;
    }
    for problem in report.problems {
        writeln!(stdout, "left out: {problem}")?;
    }
    Ok(())
}

/// A server of the configuration, or an allowed one of this folder, and its working directory.
fn find(options: &Options, name: &str) -> Result<(ToolServer, ServerFolder)> {
    let configured = options.mcp.servers.iter().find(|server| server.name == name);
    if let Some(server) = configured {
        return Ok((server.clone(), ServerFolder::Home(options.mcp.folder.clone())));
    }
    let here = std::env::current_dir()?.canonicalize()?;
    let servers = WorkspaceServers::read(&here).unwrap_or_default().servers;
    let Some(server) = servers.into_iter().find(|server| server.name == name) else {
        bail!("there is no MCP server {name}; `quintet mcp list` lists them");
    };
    if !Allowed::new(&options.data_dir).read().contains(&digest(&server, &here)) {
        bail!("the MCP server {name} of .mcp.json is not allowed; `quintet mcp allow` allows it");
    }
    Ok((server, ServerFolder::Workspace(here)))
}

fn allow(flags: &Flags, folder: Option<PathBuf>) -> Result<()> {
    let options = options::read(flags)?;
    let folder = std::path::absolute(folder.unwrap_or_else(|| PathBuf::from(".")))?;
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let servers = WorkspaceServers::read(&folder);
    let servers = servers.with_context(|| format!("{} has no .mcp.json", folder.display()))?;
    if let [problem, ..] = &servers.problems[..] {
        bail!("{problem}");
    }
    std::fs::create_dir_all(&options.data_dir)?;
    let digests = servers.servers.iter().map(|server| digest(server, &folder));
    Allowed::new(&options.data_dir).add(digests)?;
    let mut stdout = std::io::stdout().lock();
    for server in &servers.servers {
        writeln!(stdout, "allowed: {}", described(server))?;
    }
    Ok(())
}
