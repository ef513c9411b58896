//! Tokens, cost and time of model calls over time, read from the journals of all sessions.
//!
//! A journal is read once; after that, only its new events are. The figures of a session are kept in memory
//! and, while it is idle, in the store, so that the journal need not be read again after a restart.

mod calls;
mod figures;
mod series;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::port::{Error, Models, Preferences, Sessions};
use quintet_kernel::{SessionId, SessionSummary, Time};
use serde_json::{Value, json};

use figures::SessionFigures;
pub(super) use series::Range;
use series::Series;

/// How many sessions are listed at first; a longer range lists more.
const FIRST_LIST_LIMIT: usize = 256;
/// The most calls of one session that the page is sent, the newest.
const CALLS_LIMIT: usize = 500;
/// Where the figures of sessions are kept. The number changes with their format.
const FIGURES_SPACE: &str = "console.figures.1";

/// The figures of the sessions that were read. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct UsageCache {
    sessions: Arc<Mutex<HashMap<SessionId, SessionFigures>>>,
    /// True once the stored figures of deleted sessions were removed.
    has_swept: Arc<AtomicBool>,
}

/// Where usage is read from.
pub(super) struct Sources<'a> {
    pub(super) archive: &'a dyn Sessions,
    pub(super) sessions: &'a dyn Sessions,
    pub(super) models: &'a dyn Models,
    pub(super) store: &'a dyn Preferences,
}

impl UsageCache {
    /// The calls of all sessions in a range of time, by its steps and by models.
    pub(super) async fn overall(
        &self,
        sources: &Sources<'_>,
        range: Range,
    ) -> Result<Value, Error> {
        let summaries = used_since(sources.sessions, range.since()).await?;
        // A concurrent request reads for itself.
        let mut known = std::mem::take(&mut *self.lock());
        if !self.has_swept.swap(true, Ordering::Relaxed) {
            sources.sweep().await?;
        }
        let (mut kept, mut series) = (HashMap::new(), Series::new(range));
        for summary in &summaries {
            let figures = sources.current(summary, known.remove(&summary.id)).await?;
            let shared = summary.forked.as_ref().map_or(0, |fork| fork.at);
            series.add(&figures, shared);
            kept.insert(summary.id.clone(), figures);
        }
        *self.lock() = kept;
        for session in known.into_keys() {
            sources.forget_erased(&session).await?;
        }
        let mut shown = series.encode();
        shown["sessions"] = summaries.len().into();
        Ok(shown)
    }

    /// The compactions of a session, without those that it shares with its parent.
    pub(super) async fn compactions(
        &self,
        sources: &Sources<'_>,
        summary: &SessionSummary,
    ) -> Result<Vec<Value>, Error> {
        let known = self.lock().remove(&summary.id);
        let figures = sources.current(summary, known).await?;
        let shared = summary.forked.as_ref().map_or(0, |fork| fork.at);
        let shown = figures.compactions(shared).map(figures::Compaction::encode).collect();
        self.lock().insert(summary.id.clone(), figures);
        Ok(shown)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, SessionFigures>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions that were used since a time, the newest first.
async fn used_since(sessions: &dyn Sessions, since: Time) -> Result<Vec<SessionSummary>, Error> {
    let mut limit = FIRST_LIST_LIMIT;
    loop {
        let mut found = sessions.recent(None, limit).await?;
        let is_older = |summary: &SessionSummary| summary.updated < since;
        if found.len() < limit || found.last().is_some_and(is_older) {
            found.retain(|summary| !is_older(summary));
            return Ok(found);
        }
        limit = limit.saturating_mul(4);
    }
}

impl Sources<'_> {
    /// The figures of a session up to its last event. A session that was deleted meanwhile has none.
    async fn current(
        &self,
        summary: &SessionSummary,
        known: Option<SessionFigures>,
    ) -> Result<SessionFigures, Error> {
        let mut figures = match known {
            Some(figures) => figures,
            None => self.kept(&summary.id).await?,
        };
        if figures.head() > summary.head {
            figures = SessionFigures::default();
        }
        if figures.head() < summary.head {
            match figures.read_on(self.archive, &summary.id, self.models).await {
                Err(Error::NotFound(_)) => return Ok(SessionFigures::default()),
                done => done?,
            }
            if !summary.open {
                let value = serde_json::to_value(&figures).unwrap_or_default();
                self.store.set_preference(FIGURES_SPACE, summary.id.as_str(), value).await?;
            }
        }
        Ok(figures)
    }

    /// The stored figures of a session. Those that cannot be read are computed again.
    async fn kept(&self, session: &SessionId) -> Result<SessionFigures, Error> {
        let kept = self.store.preference(FIGURES_SPACE, session.as_str()).await?;
        let figures = kept.and_then(|value| serde_json::from_value::<SessionFigures>(value).ok());
        Ok(figures.map(|figures| figures.restored(self.models)).unwrap_or_default())
    }

    /// Deletes the stored figures of a session that no longer exists.
    async fn forget_erased(&self, session: &SessionId) -> Result<(), Error> {
        if let Err(Error::NotFound(_)) = self.sessions.summary(session).await {
            self.store.set_preference(FIGURES_SPACE, session.as_str(), Value::Null).await?;
        }
        Ok(())
    }

    /// Deletes the stored figures of all sessions that no longer exist.
    async fn sweep(&self) -> Result<(), Error> {
        let names = self.store.names(FIGURES_SPACE).await?;
        if names.is_empty() {
            return Ok(());
        }
        let summaries = self.sessions.recent(None, usize::MAX).await?;
        let present: HashSet<&str> = summaries.iter().map(|one| one.id.as_str()).collect();
        for name in names.iter().filter(|name| !present.contains(name.as_str())) {
            self.store.set_preference(FIGURES_SPACE, name, Value::Null).await?;
        }
        Ok(())
    }
}

/// The newest calls of one session, in order.
pub(super) async fn of_session(sources: &Sources<'_>, session: &SessionId) -> Result<Value, Error> {
    let mut figures = SessionFigures::default();
    figures.read_on(sources.archive, session, sources.models).await?;
    let calls = figures.calls();
    let shown = &calls[calls.len().saturating_sub(CALLS_LIMIT)..];
    let listed: Vec<Value> = shown.iter().map(calls::ModelCall::encode).collect();
    Ok(json!({ "calls": listed, "left_out": calls.len() - shown.len() }))
}
