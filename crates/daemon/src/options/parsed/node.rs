//! The options of this daemon as a node among others that share the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use quintet_kernel::port::NodeAddress;

use super::Layers;

/// This daemon as a node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The name, and the URL to which other nodes forward commands.
    pub(crate) address: NodeAddress,
    /// True if the configuration sets the name; otherwise it is the host name.
    pub(crate) is_named: bool,
    /// How long a silent node owns its sessions.
    pub(crate) lease: Duration,
    /// Folders that all nodes have.
    pub(crate) shared_workspaces: Vec<PathBuf>,
    /// The token of all nodes; generated in the store if `None`.
    pub(crate) token: Option<String>,
}

pub(super) fn parse(layers: &Layers) -> Result<Node> {
    let named = layers.str("node.name").map(String::from);
    let is_named = named.is_some();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = named.unwrap_or_else(|| host_name().replace(|c: char| !plain(c), "-"));
    if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
        bail!(
            "node.name: {name:?} may only have letters, digits, '-', '_' and '.' ({})",
            layers.source("node.name")
        );
    }
    let advertise = layers.str("node.advertise").map(|url| url.trim_end_matches('/').to_owned());
    if advertise.as_ref().is_some_and(|url| !url.starts_with("http://")) {
        bail!("node.advertise must begin with http:// ({})", layers.source("node.advertise"));
    }
    let lease = layers.number("node.lease_seconds").unwrap_or_default();
    if !(1..=3600).contains(&lease) {
        bail!("node.lease_seconds must be 1 to 3600 ({})", layers.source("node.lease_seconds"));
    }
    let shared = layers.list("node.shared_workspaces").unwrap_or_default();
    if let Some(path) = shared.iter().find(|path| !Path::new(path).is_absolute()) {
        let source = layers.source("node.shared_workspaces");
        bail!("node.shared_workspaces: {path:?} is not an absolute path ({source})");
    }
    Ok(Node {
        address: NodeAddress { name, advertise },
        is_named,
        lease: Duration::from_secs(lease),
        token: layers.str("node.token").filter(|token| !token.is_empty()).map(String::from),
        shared_workspaces: shared
            .iter()
            .map(|path| Path::new(path).components().collect())
            .collect(),
    })
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "node".into() } else { name }
}
