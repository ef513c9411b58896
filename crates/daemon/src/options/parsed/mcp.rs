//! The options of MCP servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use quintet_kernel::port::{ServerSandbox, ToolServer, ToolTransport};

use super::Layers;
use super::sandbox::{in_home, paths};

/// Default maximum time of a call without a sign of progress, in seconds.
const TIMEOUT_SECONDS: u64 = 60;

/// The MCP servers of the configuration.
#[derive(Debug)]
pub(crate) struct Mcp {
    pub(crate) servers: Vec<ToolServer>,
    /// The working directory of processes without a sandbox: the user's home.
    pub(crate) folder: PathBuf,
    /// Login settings by server, if configured.
    pub(crate) oauth: BTreeMap<String, OAuth>,
}

/// The login settings of a server.
#[derive(Clone, Default)]
pub(crate) struct OAuth {
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// The local port that the browser is redirected to; any if it is 0.
    pub(crate) redirect_port: u16,
}

impl std::fmt::Debug for OAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuth").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

pub(super) fn parse(layers: &Layers) -> Result<Mcp> {
    let home = layers.environment.get("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    let (mut servers, mut oauth) = (Vec::new(), BTreeMap::new());
    for name in layers.names("mcp.servers") {
        if layers.flag(&format!("mcp.servers.{name}.enabled")).unwrap_or(true) {
            oauth.insert(name.clone(), login(layers, &name)?);
            servers.push(server(layers, name)?);
        }
    }
    Ok(Mcp { servers, oauth, folder: home.unwrap_or_else(|| PathBuf::from("/")) })
}

fn server(layers: &Layers, name: String) -> Result<ToolServer> {
    let section = format!("mcp.servers.{name}");
    let path = |field: &str| format!("{section}.{field}");
    let command = command(layers, &path("command"));
    let url = layers.str(&path("url")).filter(|url| !url.is_empty());
    let (env, headers) = (table(layers, &path("env")), table(layers, &path("headers")));
    let sandbox = sandbox(layers, &section)?;
    let transport = match (command.is_empty(), url) {
        (false, None) if !headers.is_empty() => {
            bail!("{section}: headers are for a server with a url")
        }
        (false, None) => ToolTransport::Stdio { command, env, sandbox },
        (true, Some(_)) if !env.is_empty() => {
            bail!("{section}: env is for a server with a command")
        }
        (true, Some(_)) if sandbox != ServerSandbox::default() => {
            bail!("{section}: sandbox, network, read and write are for a server with a command")
        }
        (true, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
            ToolTransport::Http { url: url.to_owned(), headers }
        }
        (true, Some(url)) => {
            bail!("{} must begin with http:// or https://, not {url:?}", path("url"))
        }
        (true, None) => bail!("{section} needs either command or url"),
        (false, Some(_)) => bail!("{section} has both command and url, and needs one of them"),
    };
    let seconds = layers.number(&path("timeout_seconds")).unwrap_or(TIMEOUT_SECONDS).max(1);
    Ok(ToolServer { name, transport, timeout: Duration::from_secs(seconds) })
}

/// The command with `~/` at the beginning of a word replaced by the user's home, as a shell does.
fn command(layers: &Layers, key: &str) -> Vec<String> {
    let home = layers.environment.get("HOME").map(Path::new);
    let whole = |word: String| {
        if word.starts_with("~/") {
            in_home(&word, home).to_string_lossy().into_owned()
        } else {
            word
        }
    };
    layers.list(key).unwrap_or_default().into_iter().map(whole).collect()
}

fn sandbox(layers: &Layers, section: &str) -> Result<ServerSandbox> {
    let flag = |field: &str| layers.flag(&format!("{section}.{field}")).unwrap_or(true);
    Ok(ServerSandbox {
        enabled: flag("sandbox"),
        network: flag("network"),
        read: paths(layers, &format!("{section}.read"))?,
        write: paths(layers, &format!("{section}.write"))?,
    })
}

fn login(layers: &Layers, name: &str) -> Result<OAuth> {
    let path = |field: &str| format!("mcp.servers.{name}.oauth.{field}");
    let text =
        |field: &str| layers.str(&path(field)).filter(|text| !text.is_empty()).map(str::to_owned);
    let (client_id, client_secret) = (text("client_id"), text("client_secret"));
    if client_id.is_none() && client_secret.is_some() {
        bail!("{} needs oauth.client_id", path("client_secret"));
    }
    let port = layers.number(&path("redirect_port")).unwrap_or_default();
    let Ok(redirect_port) = u16::try_from(port) else {
        bail!("{} must be a port, not {port}", path("redirect_port"));
    };
    let scopes = layers.list(&path("scopes")).unwrap_or_default();
    Ok(OAuth { client_id, client_secret, scopes, redirect_port })
}

fn table(layers: &Layers, section: &str) -> BTreeMap<String, String> {
    let value = |name: String| {
        let value = layers.str(&format!("{section}.{name}"))?.to_owned();
        Some((name, value))
    };
    layers.names(section).into_iter().filter_map(value).collect()
}
