//! Clients of other nodes that claimed calls of sessions owned here. Only the node with the
//! connection knows its clients; if it dies, the owner learns from this record that they are
//! disconnected.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use quintet_kernel::SessionId;
use quintet_kernel::client::ClientRef;
use quintet_kernel::command::Command;

use super::Cluster;
use super::request::{Action, Request, Sender};
use crate::runtime::{Runtime, lock};

/// A client and the session of its calls.
type Holder = (SessionId, ClientRef);

/// The clients of each node, by the node's process.
#[derive(Debug, Default)]
pub(super) struct RemoteClients {
    nodes: Mutex<HashMap<String, Clients>>,
}

#[derive(Debug, Default)]
struct Clients {
    instance: String,
    holders: HashSet<Holder>,
}

impl RemoteClients {
    /// Records the sender's clients that a request names. Returns those of an earlier process of
    /// that node, which are disconnected.
    fn note(&self, request: &Request) -> Vec<Holder> {
        let Sender { name, instance } = &request.from;
        let mut nodes = lock(&self.nodes);
        let known = nodes.get(name);
        let gone = if known.is_some_and(|known| known.instance != *instance) {
            nodes.remove(name).map(|clients| clients.holders)
        } else {
            None
        };
        let Action::Submit(command) = &request.action else {
            return gone.into_iter().flatten().collect();
        };
        match &**command {
            Command::ClaimCalls { by, .. } => {
                let clients = nodes.entry(name.clone()).or_default();
                clients.instance.clone_from(instance);
                clients.holders.insert((request.session.clone(), by.clone()));
            }
            Command::Disconnect { client } => {
                if let Some(clients) = nodes.get_mut(name) {
                    clients.holders.remove(&(request.session.clone(), client.clone()));
                }
            }
            _ => {}
        }
        gone.into_iter().flatten().collect()
    }

    fn nodes(&self) -> Vec<String> {
        lock(&self.nodes).keys().cloned().collect()
    }

    fn remove(&self, node: &str) -> Vec<Holder> {
        let clients = lock(&self.nodes).remove(node);
        clients.map(|clients| clients.holders).into_iter().flatten().collect()
    }
}

impl Runtime {
    /// Records the clients that the sender of a request names.
    pub(super) async fn note_clients(&self, request: &Request) {
        let gone = self.shared().membership.remote_clients.note(request);
        self.disconnect(gone).await;
    }

    /// Starts the grace time of calls that clients of dead nodes claimed.
    pub(super) async fn disconnect_dead(&self, cluster: &Cluster) {
        let known = self.shared().membership.remote_clients.nodes();
        if known.is_empty() {
            return;
        }
        let Ok(nodes) = cluster.nodes.list().await else { return };
        for name in known {
            if !nodes.iter().any(|node| node.name == name && node.alive) {
                let gone = self.shared().membership.remote_clients.remove(&name);
                self.disconnect(gone).await;
            }
        }
    }

    async fn disconnect(&self, gone: Vec<Holder>) {
        for (session, client) in gone {
            let disconnect = Action::Submit(Box::new(Command::Disconnect { client }));
            // If the session is deleted or owned elsewhere by now, loading it started the grace
            // time of all its clients.
            if let Err(error) = self.here(&session, disconnect).await {
                tracing::debug!(%session, %error, "could not disconnect a client of a dead node");
            }
        }
    }
}
