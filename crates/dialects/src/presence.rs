//! Tracks which front ends follow which sessions, so that users see where else a session is open.
//!
//! Every protocol follows sessions through [`Presence::counted`], which counts its followers under its
//! name. A follower counts only after a short time, so that a client that only reads once is not shown.

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

/// Time that a session must be followed before the follower counts.
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
    /// The same sessions; their followers count as clients of a front end.
    pub fn counted(
        &self,
        front_end: &'static str,
        sessions: Arc<dyn Sessions>,
    ) -> Arc<dyn Sessions> {
        Arc::new(CountedSessions { front_end, sessions, presence: self.clone() })
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

    fn add(&self, session: &SessionId, front_end: &'static str) -> FollowerGuard {
        let id = self.shared.count.fetch_add(1, Ordering::Relaxed);
        let entry = Entry { id, front_end, since: Instant::now() };
        self.shared.lock().entry(session.clone()).or_default().push(entry);
        FollowerGuard { shared: Arc::clone(&self.shared), session: session.clone(), id }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Entry>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a follower from the count when it is dropped.
struct FollowerGuard {
    shared: Arc<Shared>,
    session: SessionId,
    id: u64,
}

impl Drop for FollowerGuard {
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

/// Sessions that count their followers for one front end.
struct CountedSessions {
    front_end: &'static str,
    sessions: Arc<dyn Sessions>,
    presence: Presence,
}

impl fmt::Debug for CountedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountedSessions")
            .field("front_end", &self.front_end)
            .finish_non_exhaustive()
    }
}

impl Sessions for CountedSessions {
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
            let guard = self.presence.add(&session, self.front_end);
            Ok(Box::new(CountedFollower { follower, _guard: guard }) as Box<dyn Follower>)
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

struct CountedFollower {
    follower: Box<dyn Follower>,
    _guard: FollowerGuard,
}

impl Follower for CountedFollower {
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
