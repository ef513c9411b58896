//! Daemons that share one store: their addresses, the sessions that each owns, and commands between
//! them.

use super::{BoxFuture, StorageError};
use crate::event::Seq;
use crate::id::SessionId;

/// A daemon and the address at which other nodes reach it.
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
    /// Number of sessions that the node owns.
    pub sessions: u64,
    /// Number of those sessions with an open turn.
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
    /// True if this node takes no new sessions.
    fn draining(&self) -> bool;
    /// Takes over at most `limit` sessions with an open turn whose owner is dead and whose
    /// workspace this node has. Each session is given to one node only. Always empty in a store of
    /// one node, which finds them with [`super::SessionIndex::open`] when it starts.
    fn claim_open(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>>;
}

/// Commands and replies through the store, used when the owner of a session cannot be reached
/// directly.
pub trait Inbox: Send + Sync {
    /// Stores a command for the node that owns a session. A second one with the same key is
    /// ignored.
    fn send(
        &self,
        session: &SessionId,
        key: &str,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The commands without a reply for sessions that this node owns, oldest first. A command is
    /// returned again until it has a reply, so the receiver must be idempotent by key.
    fn receive(&self) -> BoxFuture<'_, Result<Vec<InboxEntry>, StorageError>>;
    /// Answers a command; only the first answer is stored. Ignored if there is no such command.
    fn reply(&self, key: &str, body: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The answer to a command; `None` if there is none yet. Commands and answers are kept for a day, so that
    /// a repeated command gets the same answer.
    fn take_reply(&self, key: &str) -> BoxFuture<'_, Result<Option<Vec<u8>>, StorageError>>;
}

/// What another node may have done with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The journal has events up to this number.
    Moved(Seq),
    /// The session has a command in its [`Inbox`].
    Inbox,
    /// The session was erased.
    Erased,
}

/// Notices of what other nodes did.
pub trait Wakes: Send {
    /// Sessions and what was done with them. Notices may be late, repeated or lost, so followers
    /// also poll. `None` once the store is closed.
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<(SessionId, Wake)>>>;
}
