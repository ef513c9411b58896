//! Which sessions stay in memory while they have nothing to do: those that were used last, as many as
//! there is room for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The sessions that have nothing to do, oldest first.
#[derive(Debug)]
pub(crate) struct IdleSessions {
    /// Bytes that all of them may take.
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

    /// Notes that a session has nothing to do from now on, and has those leave memory that were used
    /// longest ago, if all are too many. Gives a ticket for [`Self::remove`].
    pub(crate) fn add(&self, bytes: usize, leave: &Arc<Notify>) -> u64 {
        let mut inner = self.lock();
        inner.last += 1;
        inner.bytes += bytes;
        let ticket = inner.last;
        inner.sessions.insert(ticket, Idle { bytes, leave: Arc::clone(leave) });
        // The one that was used last stays, whatever it takes.
        while inner.bytes > self.budget
            && inner.sessions.len() > 1
            && let Some((_, oldest)) = inner.sessions.pop_first()
        {
            inner.bytes -= oldest.bytes;
            oldest.leave.notify_one();
        }
        ticket
    }

    /// Has every session leave memory that has nothing to do.
    pub(crate) fn leave_all(&self) {
        self.lock().sessions.values().for_each(|idle| idle.leave.notify_one());
    }

    /// Notes that a session has something to do again, or has left.
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
