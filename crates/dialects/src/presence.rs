//! Tracks which front ends follow which sessions, so that users see where else a session is open.
//!
//! Every protocol follows sessions through [`Presence::watched`], which notes it under the protocol's
//! name. A follower counts after a moment, so that a client that only reads and leaves is not shown.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::event::{NewSession, Seq};
use quintet_kernel::port::{BoxFuture, Error, Follower, Receipt, Sessions};
use quintet_kernel::{Cursor, Item, SessionId, SessionSummary, State};
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// How long a session is followed before that counts as being there.
pub(crate) const MINIMUM_AGE: Duration = Duration::from_secs(1);

/// The followers of all sessions on this node. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    followed: Mutex<HashMap<SessionId, Vec<Entry>>>,
    count: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    front_end: &'static str,
    since: Instant,
}

impl Presence {
    /// Sessions whose followers count as clients of a front end.
    pub fn watched(
        &self,
        front_end: &'static str,
        sessions: Arc<dyn Sessions>,
    ) -> Arc<dyn Sessions> {
        Arc::new(Watched { front_end, sessions, presence: self.clone() })
    }

    /// The front ends that follow a session, with the number of followers that each has.
    pub(crate) fn of(&self, session: &SessionId) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for entry in self.shared.lock().get(session).into_iter().flatten() {
            if entry.since.elapsed() >= MINIMUM_AGE {
                *counts.entry(entry.front_end).or_default() += 1;
            }
        }
        counts
    }

    fn enter(&self, session: &SessionId, front_end: &'static str) -> Stay {
        let id = self.shared.count.fetch_add(1, Ordering::Relaxed);
        let entry = Entry { id, front_end, since: Instant::now() };
        self.shared.lock().entry(session.clone()).or_default().push(entry);
        Stay { shared: Arc::clone(&self.shared), session: session.clone(), id }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Entry>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time for which a session is followed; over when this is dropped.
struct Stay {
    shared: Arc<Shared>,
    session: SessionId,
    id: u64,
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut followed = self.shared.lock();
        if let Some(entries) = followed.get_mut(&self.session) {
            entries.retain(|entry| entry.id != self.id);
            if entries.is_empty() {
                followed.remove(&self.session);
            }
        }
    }
}

/// Sessions as one front end follows them.
struct Watched {
    front_end: &'static str,
    sessions: Arc<dyn Sessions>,
    presence: Presence,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("front_end", &self.front_end).finish_non_exhaustive()
    }
}

impl Sessions for Watched {
    fn create(&self, origin: NewSession) -> BoxFuture<'_, Result<Receipt, Error>> {
        self.sessions.create(origin)
    }

    fn submit(
        &self,
        session: &SessionId,
        command: Command,
    ) -> BoxFuture<'_, Result<Receipt, Error>> {
        self.sessions.submit(session, command)
    }

    fn fork(&self, session: &SessionId, at: Option<Seq>) -> BoxFuture<'_, Result<Receipt, Error>> {
        self.sessions.fork(session, at)
    }

    fn remove(&self, session: &SessionId) -> BoxFuture<'_, Result<(), Error>> {
        self.sessions.remove(session)
    }

    fn view(&self, session: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        self.sessions.view(session)
    }

    fn follow(
        &self,
        session: &SessionId,
        from: Cursor,
    ) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        let session = session.clone();
        Box::pin(async move {
            let follower = self.sessions.follow(&session, from).await?;
            let stay = self.presence.enter(&session, self.front_end);
            Ok(Box::new(WatchedFollower { follower, _stay: stay }) as Box<dyn Follower>)
        })
    }

    fn summary(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        self.sessions.summary(session)
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        self.sessions.list(limit)
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        self.sessions.recent(workspace, limit)
    }

    fn forks(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        self.sessions.forks(session)
    }
}

struct WatchedFollower {
    follower: Box<dyn Follower>,
    _stay: Stay,
}

impl Follower for WatchedFollower {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>> {
        self.follower.next()
    }

    fn head(&self) -> Seq {
        self.follower.head()
    }

    fn position(&self) -> Cursor {
        self.follower.position()
    }
}
