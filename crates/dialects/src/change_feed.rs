//! Publishes which sessions changed, for projections and connections that read journals themselves.
//!
//! A subscriber has a set instead of a queue: a session is in it once, however often it changed. A slow subscriber
//! therefore misses nothing, and its memory is bounded by the number of sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use quintet_kernel::port::SessionObserver;
use tokio::sync::Notify;

/// Publishes which sessions changed. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ChangeFeed {
    subscribers: Arc<Mutex<Vec<Weak<Pending>>>>,
}

/// A change of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// New events up to this one may exist.
    Head(Seq),
    /// The session was deleted.
    Erased,
}

/// Changed sessions, each with its last change.
pub type Changes = HashMap<SessionId, Change>;

/// One subscriber's view of the feed, from the moment it was created.
#[derive(Debug)]
pub struct Subscription {
    pending: Arc<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    changes: Mutex<Changes>,
    changed: Notify,
}

impl ChangeFeed {
    /// Adds a subscriber, which is removed after it is dropped.
    pub fn subscribe(&self) -> Subscription {
        let pending = Arc::default();
        let mut subscribers = lock(&self.subscribers);
        subscribers.retain(|other| other.strong_count() > 0);
        subscribers.push(Arc::downgrade(&pending));
        Subscription { pending }
    }

    fn publish(&self, session: &SessionId, change: Change) {
        for pending in lock(&self.subscribers).iter().filter_map(Weak::upgrade) {
            lock(&pending.changes).insert(session.clone(), change);
            pending.changed.notify_one();
        }
    }
}

impl SessionObserver for ChangeFeed {
    fn published(&self, session: &SessionId, head: Seq) {
        self.publish(session, Change::Head(head));
    }

    fn erased(&self, session: &SessionId) {
        self.publish(session, Change::Erased);
    }
}

impl Subscription {
    /// Waits until something changed. Cancel-safe.
    pub async fn changed(&self) {
        while lock(&self.pending.changes).is_empty() {
            self.pending.changed.notified().await;
        }
    }

    /// Takes the changes since the last call.
    pub fn take(&self) -> Changes {
        std::mem::take(&mut *lock(&self.pending.changes))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
