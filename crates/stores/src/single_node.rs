//! The only node of a store that a single daemon uses.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{
    BoxFuture, Inbox, InboxEntry, NodeAddress, NodeStatus, Nodes, SessionIndex, StorageError,
};

/// The only node of a store in memory or in SQLite: it owns every session and receives no commands
/// through the store.
pub struct SingleNode {
    address: NodeAddress,
    index: Arc<dyn SessionIndex>,
    draining: AtomicBool,
}

impl SingleNode {
    /// The node that owns all sessions of an index.
    pub fn new(address: NodeAddress, index: Arc<dyn SessionIndex>) -> Self {
        Self { address, index, draining: AtomicBool::new(false) }
    }
}

impl fmt::Debug for SingleNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleNode").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Nodes for SingleNode {
    fn this(&self) -> NodeAddress {
        self.address.clone()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<NodeStatus>, StorageError>> {
        Box::pin(async {
            let NodeAddress { name, advertise } = self.address.clone();
            Ok(vec![NodeStatus {
                name,
                advertise,
                alive: true,
                draining: self.draining(),
                sessions: self.index.list(usize::MAX).await?.len() as u64,
                open_turns: self.index.open().await?.len() as u64,
                heartbeat_age_ms: 0,
            }])
        })
    }

    fn drain(&self, name: &str, draining: bool) -> BoxFuture<'_, Result<(), StorageError>> {
        let known = name == self.address.name;
        if known {
            self.draining.store(draining, Ordering::Relaxed);
        }
        let missing = || StorageError::Missing(format!("node {name}"));
        Box::pin(ready(known.then_some(()).ok_or_else(missing)))
    }

    fn draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    fn claim_open(&self, _: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        Box::pin(ready(Ok(Vec::new())))
    }
}

impl Inbox for SingleNode {
    fn send(&self, _: &SessionId, _: &str, _: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>> {
        let alone = StorageError::Unavailable("this store has a single node".into());
        Box::pin(ready(Err(alone)))
    }

    fn receive(&self) -> BoxFuture<'_, Result<Vec<InboxEntry>, StorageError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn reply(&self, _: &str, _: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(ready(Ok(())))
    }

    fn take_reply(&self, _: &str) -> BoxFuture<'_, Result<Option<Vec<u8>>, StorageError>> {
        Box::pin(ready(Ok(None)))
    }
}
