//! Daemons that share one store: who they are, which sessions each owns, and commands between them.

use super::{BoxFuture, StorageError};
use crate::event::Seq;
use crate::id::SessionId;

/// A daemon, and where others reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeAddress {
    /// The node's name, unique in its store.
    pub name: String,
    /// The URL to which other nodes forward commands, where there is one.
    pub advertise: Option<String>,
}

/// A node as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node's name.
    pub name: String,
    /// The URL to which other nodes forward commands, where there is one.
    pub advertise: Option<String>,
    /// True if the last heartbeat is younger than the lease.
    pub alive: bool,
    /// True if the node takes no new sessions.
    pub draining: bool,
    /// How many sessions the node owns.
    pub sessions: u64,
    /// How many of those have an open turn.
    pub open_turns: u64,
    /// Milliseconds since the last heartbeat, by the store's clock.
    pub heartbeat_age_ms: u64,
}

/// A command from another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxEntry {
    /// The sender's idempotency key.
    pub key: String,
    /// The session that the command is for.
    pub session: SessionId,
    /// The command, as the sender encoded it.
    pub body: Vec<u8>,
}

/// The nodes of a store.
pub trait Nodes: Inbox {
    /// This node.
    fn this(&self) -> NodeAddress;
    /// Every node that ever registered, by name.
    fn list(&self) -> BoxFuture<'_, Result<Vec<NodeStatus>, StorageError>>;
    /// Starts or ends the draining of a node; `Missing` if the node does not exist. The node itself sees the
    /// change with its next heartbeat.
    fn drain(&self, name: &str, draining: bool) -> BoxFuture<'_, Result<(), StorageError>>;
    /// True if this node is to take no new sessions.
    fn draining(&self) -> bool;
    /// Takes over sessions with an open turn whose owner is dead and whose workspace this node has, at
    /// most so many. Each is given to one node only. Always empty in a store of one node, which finds
    /// them with [`super::SessionIndex::open`] when it starts.
    fn claim_open(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>>;
}

/// Commands and replies through the store, for when a session's owner cannot be reached directly.
pub trait Inbox: Send + Sync {
    /// Leaves a command for the node that owns a session. A second one with the same key is ignored.
    fn send(
        &self,
        session: &SessionId,
        key: &str,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The commands without a reply for sessions that this node owns, oldest first. A command is given
    /// again until it has a reply, so the receiver must be idempotent by key.
    fn receive(&self) -> BoxFuture<'_, Result<Vec<InboxEntry>, StorageError>>;
    /// Answers a command; the first answer counts. Ignored if there is no such command.
    fn reply(&self, key: &str, body: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The answer to a command; `None` if there is none yet. Commands and answers are kept for a day, so that
    /// a repeated command gets the same answer.
    fn take_reply(&self, key: &str) -> BoxFuture<'_, Result<Option<Vec<u8>>, StorageError>>;
}

/// What may have become of a session at another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The journal reaches up to this number.
    Moved(Seq),
    /// The session has something in its [`Inbox`].
    Inbox,
    /// The session was erased.
    Erased,
}

/// Notice of what other nodes did.
pub trait Wakes: Send {
    /// Sessions and what became of them. Notices may be late, repeated or lost: followers look by
    /// themselves now and then. `None` once the store is closed.
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<(SessionId, Wake)>>>;
}
