//! Membership in a cluster: what this node does for other nodes that share its store.
//!
//! A session has one owner, the node that holds its lease. Other nodes read its journal, wake their
//! followers when the store reports new events, and forward commands to the owner ([`route`]). A node
//! takes over the open sessions of dead nodes, answers requests in the store's inbox, and releases its own
//! sessions while it is drained.

mod remote_clients;
mod request;
mod route;
mod served;
mod views;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{
    Error, Forward, InboxEntry, Lease, NodeAddress, Nodes, StorageError, Wake, Wakes,
};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::runtime::{Runtime, Shared, lock};
use crate::session::StartMode;
use remote_clients::RemoteClients;
pub(crate) use request::{Action, Done};
use served::Served;
use views::Views;

/// Maximum number of sessions that are taken over with one statement.
const CLAIM_LIMIT: usize = 16;
/// How often the inbox is read, in case a notice was lost.
const INBOX_INTERVAL: Duration = Duration::from_secs(1);
/// How often the journals of sessions with followers are polled, in case a notification was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Journals that are polled, and leases that are released, in parallel.
const CONCURRENCY: usize = 16;
/// How long the release of a lease is awaited; it stays queued afterwards.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the store is searched for dead nodes, at least and at most.
const MIN_CLAIM_INTERVAL: Duration = Duration::from_millis(100);
const MAX_CLAIM_INTERVAL: Duration = Duration::from_secs(2);

/// The nodes of a store, as one of them sees them.
#[derive(Clone)]
pub struct Cluster {
    /// The nodes, and the inbox between them.
    pub nodes: Arc<dyn Nodes>,
    /// Sends requests to nodes directly.
    pub forward: Arc<dyn Forward>,
    /// How long a lease lasts after its node's last heartbeat.
    pub lease: Duration,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("node", &self.nodes.this()).finish_non_exhaustive()
    }
}

/// A node's own state as a member of the cluster.
#[derive(Debug)]
pub(crate) struct Membership {
    /// Distinguishes this process from an earlier one of the same node.
    instance: String,
    /// Cancelled, and replaced, when all leases given so far are void.
    void: Mutex<CancellationToken>,
    /// Leases of sessions that left memory with an open turn. The turn waits for a person, so
    /// another node could only wait, too.
    parked: Mutex<HashMap<SessionId, Lease>>,
    served: Served,
    views: Views,
    remote_clients: RemoteClients,
    /// Notified when there may be something in the inbox.
    inbox: Notify,
}

impl Membership {
    pub(crate) fn new(instance: String) -> Self {
        Self {
            instance,
            void: Mutex::default(),
            parked: Mutex::default(),
            served: Served::default(),
            views: Views::default(),
            remote_clients: RemoteClients::default(),
            inbox: Notify::new(),
        }
    }

    /// Cancelled once the leases that are acquired from now on are void.
    pub(crate) fn void(&self) -> CancellationToken {
        lock(&self.void).clone()
    }

    fn void_leases(&self) {
        lock(&self.parked).clear();
        std::mem::take(&mut *lock(&self.void)).cancel();
    }
}

impl Runtime {
    /// Takes part in the cluster until the runtime closes; returns the number of sessions that were taken
    /// over at the start.
    pub(crate) async fn join(&self, cluster: &Cluster) -> Result<usize, Error> {
        let shared = self.shared();
        let tasks = [
            Box::pin(watch_leases(Arc::clone(shared))) as quintet_kernel::port::BoxFuture<'_, ()>,
            Box::pin(watch_nodes(self.clone(), cluster.clone())),
            Box::pin(watch_inbox(self.clone(), cluster.clone())),
            Box::pin(poll_tails(Arc::clone(shared))),
        ];
        for task in tasks {
            shared.spawn_until_closing(task);
        }
        if let Some(wakes) = shared.deps.journal.wakes() {
            shared.spawn_until_closing(watch_journal(Arc::clone(shared), wakes));
        }
        self.take_over(cluster).await
    }

    /// Resumes the open turns of dead nodes; returns their number.
    async fn take_over(&self, cluster: &Cluster) -> Result<usize, Error> {
        let mut taken = 0;
        while !cluster.nodes.draining() {
            let claimed = cluster.nodes.claim_open(CLAIM_LIMIT).await?;
            for session in &claimed {
                self.shared().channel(session, StartMode::Recover)?;
            }
            taken += claimed.len();
            if claimed.len() < CLAIM_LIMIT {
                break;
            }
        }
        Ok(taken)
    }

    /// Executes a request of another node and returns the reply. A repeated request is executed
    /// once.
    pub async fn serve_node(&self, body: &[u8]) -> Vec<u8> {
        match request::decode(body) {
            Ok(request) => {
                self.note_clients(&request).await;
                self.shared().membership.served.serve(self, request).await.to_vec()
            }
            Err(reply) => reply,
        }
    }
}

impl Shared {
    /// Runs a task of the node until the runtime closes.
    fn spawn_until_closing(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.tasks.spawn(async move { closing.run_until_cancelled(task).await });
    }

    /// Releases the lease of a session that leaves memory.
    pub(crate) async fn give_back(&self, lease: Lease, open_turn: bool) {
        let Some(cluster) = &self.deps.cluster else { return };
        if open_turn && !self.closing.is_cancelled() && !cluster.nodes.draining() {
            lock(&self.membership.parked).insert(lease.session.clone(), lease);
        } else {
            self.release(&lease).await;
        }
    }

    /// A session that is loaded again holds its lease itself.
    pub(crate) fn unpark(&self, session: &SessionId) {
        lock(&self.membership.parked).remove(session);
    }

    /// Releases the leases of all sessions that are not in memory.
    pub(crate) async fn release_parked(&self) {
        let parked = std::mem::take(&mut *lock(&self.membership.parked));
        let releases = stream::iter(parked.into_values());
        releases.for_each_concurrent(CONCURRENCY, async |lease| self.release(&lease).await).await;
    }

    /// Releases a lease, so that any node may own the session. If this fails, the lease ends with
    /// the node.
    pub(crate) async fn release(&self, lease: &Lease) {
        let released = timeout(RELEASE_TIMEOUT, self.deps.leases.release(lease)).await;
        let slow = |_| Err(StorageError::Unavailable("storage does not answer".into()));
        if let Err(error) = released.unwrap_or_else(slow) {
            tracing::warn!(session = %lease.session, %error, "the lease was not released");
        }
    }

    /// Records that another node may have appended to a journal.
    fn moved(&self, session: &SessionId, head: Seq) {
        if self.is_live(session) {
            return;
        }
        if let Some(tail) = self.known_tail(session) {
            tail.moved_to(head);
        }
        self.deps.observers.iter().for_each(|observer| observer.published(session, head));
    }

    /// Reads the head of a session that another node owns.
    async fn poll(&self, session: &SessionId) {
        let head = self.deps.journal.head(session).await;
        if self.is_live(session) {
            return;
        }
        let tail = self.known_tail(session);
        match head {
            Ok(Some(head)) if tail.as_ref().is_some_and(|tail| tail.moved_to(head)) => {
                tracing::debug!(%session, head, "a notice was lost or late");
                self.deps.observers.iter().for_each(|observer| observer.published(session, head));
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                if let Some(tail) = tail {
                    tail.end();
                }
                self.deps.observers.iter().for_each(|observer| observer.erased(session));
            }
            Err(error) => {
                tracing::debug!(%session, %error, "could not read the head of the journal")
            }
        }
    }
}

/// Stops the sessions whose leases are void.
async fn watch_leases(shared: Arc<Shared>) {
    loop {
        shared.deps.leases.lost().await;
        tracing::error!("this node's leases are lost; its sessions continue on other nodes");
        shared.membership.void_leases();
    }
}

/// Wakes followers of sessions that other nodes own, and notifies observers.
async fn watch_journal(shared: Arc<Shared>, mut wakes: Box<dyn Wakes>) {
    while let Some(moved) = wakes.next().await {
        for (session, wake) in moved {
            match wake {
                Wake::Inbox => shared.membership.inbox.notify_one(),
                Wake::Moved(head) => shared.moved(&session, head),
                // The notice may be late, and the session may exist again.
                Wake::Erased => shared.poll(&session).await,
            }
        }
    }
}

/// Takes over sessions of dead nodes, or releases sessions while draining.
async fn watch_nodes(runtime: Runtime, cluster: Cluster) {
    let mut ticks = interval((cluster.lease / 4).clamp(MIN_CLAIM_INTERVAL, MAX_CLAIM_INTERVAL));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        runtime.disconnect_dead(&cluster).await;
        if cluster.nodes.draining() {
            runtime.shared().idle.leave_all();
            runtime.shared().release_parked().await;
            continue;
        }
        match runtime.take_over(&cluster).await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "resuming sessions of a dead node"),
            Err(error) => tracing::warn!(%error, "could not search for dead nodes"),
        }
    }
}

/// Answers requests that could not be sent directly.
async fn watch_inbox(runtime: Runtime, cluster: Cluster) {
    let mut ticks = interval(INBOX_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = runtime.shared().membership.inbox.notified() => {}
        }
        let entries = match cluster.nodes.receive().await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::debug!(%error, "could not read the inbox");
                continue;
            }
        };
        for InboxEntry { key, body, .. } in entries {
            let (runtime, cluster) = (runtime.clone(), cluster.clone());
            // An entry is returned again until it has a reply; it is executed once.
            runtime.shared().clone().tasks.spawn(async move {
                let reply = runtime.serve_node(&body).await;
                if request::is_final(&reply)
                    && let Err(error) = cluster.nodes.reply(&key, reply).await
                {
                    tracing::debug!(%error, "could not store a reply in the inbox");
                }
            });
        }
    }
}

/// Polls journals, because notices may be lost.
async fn poll_tails(shared: Arc<Shared>) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let followed = stream::iter(shared.followed_elsewhere());
        followed
            .for_each_concurrent(CONCURRENCY, async |session| shared.poll(&session).await)
            .await;
    }
}

/// The node that must execute the request instead of this one.
fn elsewhere(error: &Error) -> Option<&NodeAddress> {
    match error {
        Error::Storage(StorageError::Held(node)) => Some(node),
        _ => None,
    }
}
