//! A store in memory, for tests.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::{Arc, Mutex};

use quintet_kernel::event::Seq;
use quintet_kernel::follow::Delta;
use quintet_kernel::id::{BlobId, SessionId};
use quintet_kernel::port::{
    Alias, BlobBody, Blobs, BoxFuture, Drafts, Lease, Leases, Snapshot, StorageError,
};
use quintet_kernel::session_summary::SessionSummary;
use quintet_kernel::time::Time;

use crate::{blobs, lock};

mod front_ends;
mod history;
mod index;
mod journal;
mod nodes;
mod runs;

/// A store in memory. Clones share the contents.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    contents: Arc<Mutex<Contents>>,
    epoch: u64,
    /// The node of this handle, if the store has several.
    node: Option<Arc<str>>,
}

/// The contents of a store.
#[derive(Debug, Default)]
struct Contents {
    epoch: u64,
    sessions: HashMap<SessionId, StoredSession>,
    aliases: HashMap<Alias, SessionId>,
    drafts: HashMap<SessionId, Vec<Delta>>,
    blobs: HashMap<BlobId, Vec<u8>>,
    front_ends: front_ends::FrontEnds,
    runs: runs::RunTable,
    nodes: nodes::NodeTable,
    /// Blobs that may be unreferenced: recently stored ones, and those of deleted sessions.
    loose: HashSet<BlobId>,
}

/// One session.
#[derive(Debug)]
struct StoredSession {
    /// Number of sessions created before it.
    rank: usize,
    /// When an event other than text was last appended.
    used: Time,
    history: Arc<History>,
    summary: SessionSummary,
}

/// A session's events: those shared with its parent, by reference, and its own.
///
/// A fork keeps shared events alive, even when the parent is deleted.
#[derive(Debug, Default)]
struct History {
    shared: Option<SharedPrefix>,
    own: Mutex<Vec<StoredEvent>>,
    snapshot: Mutex<Option<Snapshot>>,
}

/// The beginning of a parent's history.
#[derive(Clone, Debug)]
struct SharedPrefix {
    with: Arc<History>,
    upto: Seq,
}

/// An event, encoded as on disk, so that sizes are the same.
#[derive(Clone, Debug)]
struct StoredEvent {
    at: Time,
    body: Vec<u8>,
    blobs: Vec<BlobId>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same contents as a restarted daemon would find them: earlier leases are invalid.
    pub fn reopen(&self) -> Self {
        let mut contents = lock(&self.contents);
        contents.epoch += 1;
        contents.delete_unreferenced();
        Self {
            contents: Arc::clone(&self.contents),
            epoch: contents.epoch,
            node: self.node.clone(),
        }
    }
}

impl Leases for MemoryStore {
    fn acquire(&self, session: &SessionId) -> BoxFuture<'_, Result<Lease, StorageError>> {
        let lease = match &self.node {
            Some(node) => lock(&self.contents).nodes.acquire(node, session),
            None => Ok(Lease { session: session.clone(), epoch: self.epoch }),
        };
        Box::pin(ready(lease))
    }

    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<(), StorageError>> {
        lock(&self.contents).nodes.release(lease);
        Box::pin(ready(Ok(())))
    }

    fn lost(&self) -> BoxFuture<'static, ()> {
        self.leases_lost()
    }
}

impl Contents {
    /// Refuses a lease that is void.
    fn check(&self, lease: &Lease) -> Result<(), StorageError> {
        let held =
            if self.nodes.is_empty() { lease.epoch == self.epoch } else { self.nodes.holds(lease) };
        held.then_some(()).ok_or(StorageError::Fenced)
    }
}

impl Drafts for MemoryStore {
    fn push(&self, session: &SessionId, delta: &Delta) -> Result<(), StorageError> {
        lock(&self.contents).drafts.entry(session.clone()).or_default().push(delta.clone());
        Ok(())
    }

    fn load(&self, session: &SessionId) -> Result<Vec<Delta>, StorageError> {
        Ok(lock(&self.contents).drafts.get(session).cloned().unwrap_or_default())
    }

    fn clear(&self, session: &SessionId) {
        lock(&self.contents).drafts.remove(session);
    }
}

impl Blobs for MemoryStore {
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>> {
        let blob = lock(&self.contents).put(content);
        Box::pin(ready(Ok(blob)))
    }

    fn put_all(&self, contents: Vec<BlobBody>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>> {
        let one = |content| {
            if let BlobBody::Hash(blob) = content {
                return Ok(blob);
            }
            let content = blobs::read_body(content)?.unwrap_or_default();
            Ok(lock(&self.contents).put(content))
        };
        Box::pin(ready(contents.into_iter().map(one).collect()))
    }

    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let found = lock(&self.contents).blobs.get(blob).cloned();
        Box::pin(ready(found.ok_or_else(|| StorageError::Missing(format!("blob {blob}")))))
    }

    fn body(&self, blob: &BlobId, _: u64) -> BoxFuture<'_, Result<BlobBody, StorageError>> {
        let blob = blob.clone();
        Box::pin(async move { self.get(&blob).await.map(BlobBody::Bytes) })
    }
}
