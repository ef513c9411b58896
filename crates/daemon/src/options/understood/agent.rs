//! The agent-server protocol.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::address;
use crate::options::layers::Layers;

/// How the protocol is set up.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    /// Where it is spoken.
    pub(crate) socket: Port,
    /// Where it is said whether the daemon is well.
    pub(crate) health: Port,
    pub(crate) hosts: Vec<String>,
    pub(crate) token: Option<String>,
    /// How often a client is asked whether it is there.
    pub(crate) ping: Duration,
    /// How long it may be silent.
    pub(crate) silence: Duration,
    /// Where people who choose a folder begin to look.
    pub(crate) home: Option<PathBuf>,
}

/// Where something listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) address: Option<SocketAddr>,
    /// Whether somebody asked for that address; if not, it is no harm if another program has it.
    pub(crate) wanted: bool,
}

impl Port {
    pub(super) fn of(layers: &Layers, path: &str) -> Result<Self> {
        Ok(Self { address: address(layers, path)?, wanted: layers.source(path) != "default" })
    }

    /// The same place with the port for development, unless somebody asked for another one.
    pub(crate) fn dev(mut self) -> Self {
        if let Some(address) = self.address.as_mut().filter(|_| !self.wanted) {
            address.set_port(address.port() + 2);
        }
        self
    }
}

pub(super) fn understand(layers: &Layers) -> Result<Agent> {
    let seconds = |path: &str| Duration::from_secs(layers.number(path).unwrap_or(1).max(1));
    Ok(Agent {
        socket: Port::of(layers, "listen.agent")?,
        health: Port::of(layers, "listen.agent_health")?,
        hosts: layers.list("agent.hosts").unwrap_or_default(),
        token: layers.str("agent.auth_token").filter(|token| !token.is_empty()).map(Into::into),
        ping: seconds("agent.ping_seconds"),
        silence: seconds("agent.silence_seconds"),
        home: layers.environment.get("HOME").filter(|home| !home.is_empty()).map(Into::into),
    })
}
