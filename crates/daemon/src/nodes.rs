//! The nodes of a shared store: how they reach each other, and `quintet nodes`.

mod forward;
mod listener;
mod settings;
mod token;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use quintet_kernel::port::Preferences;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::assemble::Assembly;
use crate::cli::{Flags, Nodes};
use crate::options::{self, Options};
use crate::storage::Storage;
pub(crate) use forward::HttpForward;
use listener::{NodeListener, ServedNode};
use settings::NodeSettings;
pub(crate) use token::NodeToken;

/// How often a draining node is polled.
const DRAIN_INTERVAL: Duration = Duration::from_millis(500);

/// This node, once its address for others is bound.
pub(crate) struct BoundNode {
    listener: NodeListener,
    node: ServedNode,
    token: String,
}

/// Determines the nodes' token and binds the address for other nodes; `None` if there are no other
/// nodes.
pub(crate) async fn bind(options: &Options, assembly: &Assembly) -> Result<Option<BoundNode>> {
    let Some(token) = &assembly.node_token else { return Ok(None) };
    let settings = &*assembly.storage.preferences;
    let token = token.resolve(options.node.token.as_deref(), settings, &options.data_dir).await?;
    let Some(advertise) = &options.node.address.advertise else {
        tracing::warn!(
            "node.advertise is not set: other nodes reach this one through the database"
        );
        return Ok(None);
    };
    let listener = NodeListener::bind(advertise).await?;
    let nodes = Arc::clone(&assembly.storage.nodes);
    let node = ServedNode { runtime: assembly.runtime.clone(), nodes };
    Ok(Some(BoundNode { listener, node, token }))
}

impl BoundNode {
    /// Serves other nodes until the daemon closes.
    pub(crate) async fn serve(self, closing: CancellationToken) {
        self.listener.serve(self.node, self.token, closing).await;
    }
}

/// The settings of this node's own files.
pub(crate) fn own_settings(options: &Options, storage: &Storage) -> Arc<dyn Preferences> {
    let settings = Arc::clone(&storage.preferences);
    match &options.store {
        Some(_) => Arc::new(NodeSettings { settings, node: options.node.address.name.clone() }),
        None => settings,
    }
}

/// `quintet nodes`: uses the local daemon.
pub(crate) fn main(verb: Option<Nodes>, flags: &Flags) -> Result<()> {
    let flags = match &verb {
        None => flags,
        Some(Nodes::Drain { flags, .. } | Nodes::Undrain { flags, .. }) => flags,
    };
    let options = options::read(flags)?;
    let advertise = options.node.address.advertise.clone().filter(|_| options.store.is_some());
    let Some(advertise) = advertise else {
        bail!(
            "store.url and node.advertise are needed: without them a daemon has its store to itself"
        );
    };
    let client = HttpForward::new(NodeToken::read(&options.data_dir)?)?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    threads.block_on(async {
        match verb {
            None => print(&nodes(&client, &advertise).await?),
            Some(Nodes::Drain { name, .. }) => drain(&client, &advertise, &name).await,
            Some(Nodes::Undrain { name, .. }) => {
                client.drain(&advertise, &name, false).await.with_context(|| advertise.clone())
            }
        }
    })
}

async fn nodes(client: &HttpForward, url: &str) -> Result<Vec<Value>> {
    let listed = client.list(url).await;
    let listed = listed.with_context(|| format!("no daemon answers at {url}"))?;
    Ok(listed["nodes"].as_array().cloned().unwrap_or_default())
}

fn print(nodes: &[Value]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let head = ["NAME", "STATE", "SESSIONS", "OPEN TURNS", "ADDRESS"];
    writeln!(stdout, "{:<20} {:<9} {:>8} {:>10}  {}", head[0], head[1], head[2], head[3], head[4])?;
    for node in nodes {
        let state = match (node["alive"] == true, node["draining"] == true) {
            (false, _) => "dead",
            (true, true) => "draining",
            (true, false) => "alive",
        };
        let (name, address) = (text(&node["name"]), text(&node["address"]));
        let number = |name: &str| node[name].as_u64().unwrap_or(0);
        let (sessions, open) = (number("sessions"), number("open_turns"));
        writeln!(stdout, "{name:<20} {state:<9} {sessions:>8} {open:>10}  {address}")?;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// Drains a node and waits until it has no sessions.
async fn drain(client: &HttpForward, url: &str, name: &str) -> Result<()> {
    client.drain(url, name, true).await.with_context(|| url.to_owned())?;
    let mut last = None;
    loop {
        let nodes = nodes(client, url).await?;
        let Some(node) = nodes.iter().find(|node| node["name"] == name) else {
            bail!("there is no node {name}");
        };
        let left = (node["sessions"].as_u64(), node["open_turns"].as_u64());
        if last != Some(left) {
            let (sessions, turns) = (left.0.unwrap_or(0), left.1.unwrap_or(0));
            eprintln!("{name}: {sessions} sessions, {turns} of them with an open turn");
        }
        if node["alive"] != true || left.0 == Some(0) {
            return Ok(());
        }
        last = Some(left);
        tokio::time::sleep(DRAIN_INTERVAL).await;
    }
}
