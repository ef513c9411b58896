//! The sessions that stay in memory without work: the most recently used ones, within a byte
//! budget.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The idle sessions in memory, least recently used first.
#[derive(Debug)]
pub(crate) struct IdleSessions {
    /// Bytes that all of them may use.
    budget: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    bytes: usize,
    last: u64,
    sessions: BTreeMap<u64, Idle>,
}

#[derive(Debug)]
struct Idle {
    bytes: usize,
    leave: Arc<Notify>,
}

impl IdleSessions {
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, inner: Mutex::default() }
    }

    /// Registers an idle session, and evicts the least recently used ones if the budget is
    /// exceeded. Returns a ticket for [`Self::remove`].
    pub(crate) fn add(&self, bytes: usize, leave: &Arc<Notify>) -> u64 {
        let mut inner = self.lock();
        inner.last += 1;
        inner.bytes += bytes;
        let ticket = inner.last;
        inner.sessions.insert(ticket, Idle { bytes, leave: Arc::clone(leave) });
        // The most recently used session stays, even if it exceeds the budget alone.
        while inner.bytes > self.budget
            && inner.sessions.len() > 1
            && let Some((_, oldest)) = inner.sessions.pop_first()
        {
            inner.bytes -= oldest.bytes;
            oldest.leave.notify_one();
        }
        ticket
    }

    /// Makes all idle sessions leave memory.
    pub(crate) fn leave_all(&self) {
        self.lock().sessions.values().for_each(|idle| idle.leave.notify_one());
    }

    /// Unregisters a session that is in use again or has left memory.
    pub(crate) fn remove(&self, ticket: u64) {
        let mut inner = self.lock();
        if let Some(idle) = inner.sessions.remove(&ticket) {
            inner.bytes -= idle.bytes;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
