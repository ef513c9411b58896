//! Projections: copies of sessions that follow the journal, such as the session tree and the audit log.
//!
//! A projection stores its position in each session and, for all of them together, a time up to which it is
//! complete: at a start only sessions that changed after that time are checked, and only those with new events
//! are opened.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::event::Seq;
use quintet_kernel::port::{Clock, Error, Sessions, StorageError};
use quintet_kernel::{SessionId, SessionSummary, Time};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::change_feed::{Change, Changes, Subscription};

/// Time for which changes are collected before they are written.
const GATHER_INTERVAL: Duration = Duration::from_millis(250);
/// Interval at which the position of the whole projection is stored.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);
/// The interval at which deferred writes are checked.
pub(crate) const DEFERRED_INTERVAL: Duration = Duration::from_secs(2);
/// The longest time from stamping an event to publishing it.
const PUBLISH_LIMIT: Duration = Duration::from_secs(60);
/// Sessions that are written before the position is stored again.
const WRITES_LIMIT: usize = 256;
/// The size of the first page when the number of changed sessions is not known.
const FIRST_PAGE: usize = 64;

/// A copy of sessions that follows the journal.
pub trait Projection: Send {
    /// The name in logs.
    const NAME: &'static str;

    /// The time up to which the copy is complete; the minimum if not known.
    fn since(&self) -> Time;

    /// True if the copy contains a session up to this event.
    fn has(&mut self, session: &SessionId, head: Seq) -> impl Future<Output = bool> + Send;

    /// Erased sessions that the copy may still contain.
    fn erased(&mut self) -> impl Future<Output = Result<Vec<SessionId>, ProjectionError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Brings the copy of one session up to date. A repeated call after a crash must find what was done.
    fn update(
        &mut self,
        session: &SessionId,
        change: Change,
    ) -> impl Future<Output = Result<(), ProjectionError>> + Send;

    /// True if writes were deferred.
    fn has_deferred(&self) -> bool {
        false
    }

    /// Does deferred writes. A write that fails and may work later stays deferred.
    fn write_deferred(
        &mut self,
        _which: Deferred,
    ) -> impl Future<Output = Result<(), ProjectionError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Stores the position: the copy has everything that happened before this time.
    fn checkpoint(
        &mut self,
        since: Time,
    ) -> impl Future<Output = Result<(), ProjectionError>> + Send;
}

/// The deferred writes to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferred {
    /// Writes for sessions without events for a while. Done every `DEFERRED_INTERVAL`.
    Quiet,
    /// All deferred writes.
    All,
}

/// The reason why a copy is not up to date.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] Error),
    /// The position cannot be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The sources of a projection.
pub struct Sources {
    /// Changes from now on.
    pub changes: Subscription,
    /// Sessions that changed before.
    pub sessions: Arc<dyn Sessions>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Stops the projection; changes up to then are still written.
    pub stop: CancellationToken,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}

/// Keeps a projection up to date until it is stopped.
pub async fn run<P: Projection>(projection: P, sources: Sources) {
    let mut task = ProjectionTask {
        projection,
        sources,
        failed_sessions: Changes::new(),
        writes: 0,
        caught_up: true,
    };
    task.catch_up().await;
    let mut checkpoints = interval(CHECKPOINT_INTERVAL);
    checkpoints.tick().await;
    let mut deferred = interval(DEFERRED_INTERVAL);
    deferred.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = task.sources.changes.changed() => {
                task.gather().await;
                task.write(task.sources.changes.take()).await;
            }
            _ = checkpoints.tick() => task.checkpoint(Deferred::Quiet).await,
            _ = deferred.tick(), if task.projection.has_deferred() => {
                task.write_deferred(Deferred::Quiet).await;
            }
            () = task.sources.stop.cancelled() => break,
        }
    }
    task.checkpoint(Deferred::All).await;
}

struct ProjectionTask<P> {
    projection: P,
    sources: Sources,
    /// Sessions whose update failed, to be retried.
    failed_sessions: Changes,
    /// The number of sessions written since the position was last saved.
    writes: usize,
    /// True if all changes from before the start were found.
    caught_up: bool,
}

impl<P: Projection> ProjectionTask<P> {
    /// Writes what changed before the start, including deferred writes, because a crash may have delayed
    /// those for long.
    async fn catch_up(&mut self) {
        let since = self.projection.since();
        // Changes that are published meanwhile are written later, so the position is that of the start.
        let started = self.sources.clock.now().before(PUBLISH_LIMIT);
        let summaries = changed_since(&*self.sources.sessions, since).await.unwrap_or_else(|error| {
            tracing::error!(projection = P::NAME, %error, "listing sessions failed, so older changes are missing");
            self.caught_up = false;
            Vec::new()
        });
        self.remove_erased().await;
        // Stores a position even if nothing is missing, so that the next start checks fewer sessions.
        self.writes += summaries.len().min(1);
        for summary in summaries.into_iter().rev() {
            if self.sources.stop.is_cancelled() {
                self.caught_up = false;
                return;
            }
            if !self.projection.has(&summary.id, summary.head).await {
                self.update(summary.id, Change::Head(summary.head)).await;
            }
            if self.writes >= WRITES_LIMIT {
                self.store_position(since).await;
            }
        }
        if self.writes > 0 && self.write_deferred(Deferred::All).await {
            self.store_reached_position(started).await;
        }
    }

    /// Does deferred writes; false if that failed.
    async fn write_deferred(&mut self, which: Deferred) -> bool {
        let written = self.projection.write_deferred(which).await;
        if let Err(error) = &written {
            tracing::warn!(projection = P::NAME, %error, "deferred writes failed");
        }
        written.is_ok()
    }

    /// Updates the copies of sessions that were erased while the projection was not running.
    async fn remove_erased(&mut self) {
        match self.projection.erased().await {
            Ok(erased) => {
                for session in erased {
                    self.update(session, Change::Head(0)).await;
                }
            }
            Err(error) => {
                tracing::error!(projection = P::NAME, %error, "listing erased sessions failed");
            }
        }
    }

    async fn gather(&self) {
        tokio::select! {
            () = sleep(GATHER_INTERVAL) => {}
            () = self.sources.stop.cancelled() => {}
        }
    }

    async fn write(&mut self, changes: Changes) {
        for (session, change) in changes {
            self.update(session, change).await;
        }
    }

    async fn update(&mut self, session: SessionId, change: Change) {
        self.writes += 1;
        match self.projection.update(&session, change).await {
            Ok(()) => {
                self.failed_sessions.remove(&session);
            }
            Err(error) => {
                tracing::warn!(projection = P::NAME, %session, %error, "updating the copy of a session failed");
                if is_transient(&error) {
                    self.failed_sessions.insert(session, change);
                }
            }
        }
    }

    /// Writes remaining changes, and stores the position if there is a new one.
    async fn checkpoint(&mut self, which: Deferred) {
        let now = self.sources.clock.now().before(PUBLISH_LIMIT);
        let mut changes = std::mem::take(&mut self.failed_sessions);
        changes.extend(self.sources.changes.take());
        self.write(changes).await;
        // A later position would lose the failed writes after a crash.
        if self.write_deferred(which).await && self.writes > 0 {
            self.store_reached_position(now).await;
        }
    }

    /// Stores the reached position, or the old one if something is missing.
    async fn store_reached_position(&mut self, reached: Time) {
        let complete = self.caught_up && self.failed_sessions.is_empty();
        let since = if complete { reached } else { self.projection.since().min(reached) };
        self.store_position(since).await;
    }

    async fn store_position(&mut self, since: Time) {
        self.writes = 0;
        if let Err(error) = self.projection.checkpoint(since).await {
            tracing::warn!(projection = P::NAME, %error, "storing the position failed");
        }
    }
}

/// True if an update may succeed later. Damaged or missing data and names that are too long are permanent.
pub(crate) fn is_transient(error: &ProjectionError) -> bool {
    match error {
        ProjectionError::Session(Error::Storage(error)) | ProjectionError::Storage(error) => {
            match error {
                StorageError::Damaged(_) | StorageError::Missing(_) => false,
                StorageError::Conflict(_)
                | StorageError::Fenced
                | StorageError::Held(_)
                | StorageError::Unavailable(_) => true,
            }
        }
        ProjectionError::File(error) => error.kind() != ErrorKind::InvalidFilename,
        ProjectionError::Session(_) => true,
    }
}

/// The sessions with changes at or after a time, newest first.
async fn changed_since(sessions: &dyn Sessions, since: Time) -> Result<Vec<SessionSummary>, Error> {
    let mut limit = FIRST_PAGE;
    loop {
        let mut summaries = sessions.recent(None, limit).await?;
        let is_all = summaries.len() < limit;
        if is_all || summaries.last().is_none_or(|oldest| oldest.updated < since) {
            summaries.retain(|summary| summary.updated >= since);
            return Ok(summaries);
        }
        limit = limit.saturating_mul(4);
    }
}

#[cfg(test)]
mod tests;
