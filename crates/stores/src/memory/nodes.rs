//! Several nodes on one store in memory, for tests. Each node has its own handle and can be killed.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::Arc;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{
    BoxFuture, Inbox, InboxEntry, Lease, NodeAddress, NodeStatus, Nodes, StorageError, Wake, Wakes,
};
use tokio::sync::{Notify, mpsc};

use super::MemoryStore;
use crate::lock;

/// The nodes and the sessions that each owns.
#[derive(Debug, Default)]
pub(super) struct NodeTable {
    nodes: BTreeMap<Arc<str>, Node>,
    owners: HashMap<SessionId, Owner>,
    last_epoch: u64,
    inbox: Vec<Letter>,
    listeners: Vec<mpsc::UnboundedSender<(SessionId, Wake)>>,
}

#[derive(Debug)]
struct Node {
    alive: bool,
    draining: bool,
    lost: Arc<Notify>,
}

#[derive(Debug)]
struct Owner {
    node: Arc<str>,
    epoch: u64,
}

#[derive(Debug)]
struct Letter {
    entry: InboxEntry,
    reply: Option<Vec<u8>>,
}

impl NodeTable {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn holds(&self, lease: &Lease) -> bool {
        self.owners.get(&lease.session).is_some_and(|owner| owner.epoch == lease.epoch)
    }

    pub(super) fn acquire(
        &mut self,
        node: &Arc<str>,
        session: &SessionId,
    ) -> Result<Lease, StorageError> {
        if let Some(owner) = self.live_owner(session).filter(|owner| owner.node != *node) {
            return Err(StorageError::Held(address(&owner.node)));
        }
        self.last_epoch += 1;
        let epoch = self.last_epoch;
        self.owners.insert(session.clone(), Owner { node: Arc::clone(node), epoch });
        Ok(Lease { session: session.clone(), epoch })
    }

    pub(super) fn release(&mut self, lease: &Lease) {
        if self.holds(lease) {
            self.owners.remove(&lease.session);
        }
    }

    /// Notifies every node that listens.
    pub(super) fn wake(&mut self, session: &SessionId, wake: Wake) {
        self.listeners.retain(|listener| listener.send((session.clone(), wake)).is_ok());
    }

    fn live_owner(&self, session: &SessionId) -> Option<&Owner> {
        let is_alive = |owner: &&Owner| self.nodes.get(&owner.node).is_some_and(|node| node.alive);
        self.owners.get(session).filter(is_alive)
    }
}

fn address(name: &str) -> NodeAddress {
    NodeAddress { name: name.to_owned(), advertise: Some(format!("memory:{name}")) }
}

impl MemoryStore {
    /// A handle to the same contents for the node of this name.
    pub fn node(&self, name: &str) -> Self {
        let name: Arc<str> = name.into();
        let node = Node { alive: true, draining: false, lost: Arc::default() };
        lock(&self.contents).nodes.nodes.insert(Arc::clone(&name), node);
        Self { node: Some(name), ..self.clone() }
    }

    /// Makes the other nodes consider this one dead. The node itself does not know, like a paused
    /// process.
    pub fn crash(&self) {
        self.with_node(|node| node.alive = false);
    }

    /// Makes this node notice that its leases are lost; it is alive again afterwards.
    pub fn lose_leases(&self) {
        self.with_node(|node| {
            node.alive = true;
            node.lost.notify_waiters();
        });
        let mut contents = lock(&self.contents);
        contents.nodes.owners.retain(|_, owner| Some(&owner.node) != self.node.as_ref());
    }

    pub(super) fn leases_lost(&self) -> BoxFuture<'static, ()> {
        let lost = self.with_node(|node| Arc::clone(&node.lost));
        Box::pin(async move {
            match lost {
                Some(lost) => lost.notified().await,
                None => std::future::pending().await,
            }
        })
    }

    pub(super) fn notices(&self) -> Box<dyn Wakes> {
        let (sender, notices) = mpsc::unbounded_channel();
        lock(&self.contents).nodes.listeners.push(sender);
        Box::new(Notices(notices))
    }

    fn with_node<T>(&self, use_it: impl FnOnce(&mut Node) -> T) -> Option<T> {
        let name = self.node.as_ref()?;
        lock(&self.contents).nodes.nodes.get_mut(name).map(use_it)
    }
}

struct Notices(mpsc::UnboundedReceiver<(SessionId, Wake)>);

impl Wakes for Notices {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<(SessionId, Wake)>>> {
        Box::pin(async { self.0.recv().await.map(|notice| vec![notice]) })
    }
}

impl Nodes for MemoryStore {
    fn this(&self) -> NodeAddress {
        address(self.node.as_deref().unwrap_or("memory"))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<NodeStatus>, StorageError>> {
        let contents = lock(&self.contents);
        let status = |(name, node): (&Arc<str>, &Node)| {
            let owned = |owner: &&Owner| owner.node == *name;
            let NodeAddress { name, advertise } = address(name);
            NodeStatus {
                advertise,
                alive: node.alive,
                draining: node.draining,
                sessions: contents.nodes.owners.values().filter(owned).count() as u64,
                open_turns: 0,
                heartbeat_age_ms: 0,
                name,
            }
        };
        let nodes = contents.nodes.nodes.iter().map(status).collect();
        Box::pin(ready(Ok(nodes)))
    }

    fn drain(&self, name: &str, draining: bool) -> BoxFuture<'_, Result<(), StorageError>> {
        let mut contents = lock(&self.contents);
        let found = contents.nodes.nodes.get_mut(name).map(|node| node.draining = draining);
        Box::pin(ready(found.ok_or_else(|| StorageError::Missing(format!("node {name}")))))
    }

    fn draining(&self) -> bool {
        self.with_node(|node| node.draining).unwrap_or_default()
    }

    fn claim_open(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        let Some(node) = &self.node else { return Box::pin(ready(Ok(Vec::new()))) };
        let mut contents = lock(&self.contents);
        let open = contents.sessions.iter().filter(|(_, session)| session.summary.open);
        let dead = open.filter(|(id, _)| contents.nodes.live_owner(id).is_none());
        let dead: Vec<SessionId> = dead.map(|(id, _)| id.clone()).take(limit).collect();
        for session in &dead {
            let claimed = contents.nodes.acquire(node, session);
            debug_assert!(claimed.is_ok(), "the session has no live owner");
        }
        Box::pin(ready(Ok(dead)))
    }
}

impl Inbox for MemoryStore {
    fn send(
        &self,
        session: &SessionId,
        key: &str,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let nodes = &mut lock(&self.contents).nodes;
        if nodes.inbox.iter().all(|letter| letter.entry.key != key) {
            let entry = InboxEntry { key: key.to_owned(), session: session.clone(), body };
            nodes.inbox.push(Letter { entry, reply: None });
        }
        nodes.wake(session, Wake::Inbox);
        Box::pin(ready(Ok(())))
    }

    fn receive(&self) -> BoxFuture<'_, Result<Vec<InboxEntry>, StorageError>> {
        let contents = lock(&self.contents);
        let owned = |letter: &&Letter| {
            let owner = contents.nodes.live_owner(&letter.entry.session);
            letter.reply.is_none() && owner.map(|owner| &owner.node) == self.node.as_ref()
        };
        let entries = contents.nodes.inbox.iter().filter(owned);
        Box::pin(ready(Ok(entries.map(|letter| letter.entry.clone()).collect())))
    }

    fn reply(&self, key: &str, body: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>> {
        let inbox = &mut lock(&self.contents).nodes.inbox;
        if let Some(letter) = inbox.iter_mut().find(|letter| letter.entry.key == key) {
            letter.reply.get_or_insert(body);
        }
        Box::pin(ready(Ok(())))
    }

    fn take_reply(&self, key: &str) -> BoxFuture<'_, Result<Option<Vec<u8>>, StorageError>> {
        let contents = lock(&self.contents);
        let sent = contents.nodes.inbox.iter().find(|letter| letter.entry.key == key);
        Box::pin(ready(Ok(sent.and_then(|letter| letter.reply.clone()))))
    }
}
