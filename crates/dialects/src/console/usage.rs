//! What model calls took, over time: tokens, cost and seconds, read from the journals of sessions.
//!
//! A journal is read once and from then on only where it grew.

mod calls;
mod series;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::event::Seq;
use quintet_kernel::port::{Error, Models, Sessions};
use quintet_kernel::{Cursor, Item, SessionId, SessionSummary};
use serde_json::{Value, json};

pub(super) use calls::CallReader;
pub(super) use series::Range;
use series::Series;

/// How many of the sessions that were used last are read.
const SESSIONS_LIMIT: usize = 300;
/// The most calls of one session that the page is sent, the newest.
const CALLS_LIMIT: usize = 500;

/// The model calls of the sessions that were read. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct UsageCache {
    sessions: Arc<Mutex<HashMap<SessionId, Known>>>,
}

/// What is known of a session's calls up to an event.
#[derive(Debug, Default)]
struct Known {
    head: Seq,
    reader: CallReader,
}

/// Where usage is read from.
pub(super) struct Sources<'a> {
    pub(super) archive: &'a dyn Sessions,
    pub(super) sessions: &'a dyn Sessions,
    pub(super) models: &'a dyn Models,
}

impl UsageCache {
    /// The calls of all sessions in a range of time, by its steps and by models.
    pub(super) async fn overall(
        &self,
        sources: &Sources<'_>,
        range: Range,
    ) -> Result<Value, Error> {
        let mut summaries = sources.sessions.recent(None, SESSIONS_LIMIT + 1).await?;
        summaries.retain(|summary| summary.updated >= range.since());
        let is_partial = summaries.len() > SESSIONS_LIMIT;
        summaries.truncate(SESSIONS_LIMIT);
        // Another request that comes meanwhile reads for itself.
        let mut known = std::mem::take(&mut *self.lock());
        let (mut kept, mut series) = (HashMap::new(), Series::new(range));
        for summary in &summaries {
            let mut session = known.remove(&summary.id).unwrap_or_default();
            session.read_on(sources, summary).await?;
            series.add(session.own_calls(summary));
            kept.insert(summary.id.clone(), session);
        }
        *self.lock() = kept;
        let mut shown = series.encode();
        shown["sessions"] = summaries.len().into();
        shown["partial"] = is_partial.into();
        Ok(shown)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Known>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Reads the events that the session has got since. A session that was erased meanwhile has none.
    async fn read_on(
        &mut self,
        sources: &Sources<'_>,
        summary: &SessionSummary,
    ) -> Result<(), Error> {
        if self.head == summary.head && self.head > 0 {
            return Ok(());
        }
        match read(sources, &summary.id, self).await {
            Err(Error::NotFound(_)) => Ok(()),
            done => done,
        }
    }

    /// The calls without those that a fork shares with its parent.
    fn own_calls(&self, summary: &SessionSummary) -> impl Iterator<Item = &calls::ModelCall> {
        let shared = summary.forked.as_ref().map_or(0, |fork| fork.at);
        self.reader.calls().iter().filter(move |call| call.seq > shared)
    }
}

/// The newest calls of one session, in order.
pub(super) async fn of_session(sources: &Sources<'_>, session: &SessionId) -> Result<Value, Error> {
    let mut known = Known::default();
    read(sources, session, &mut known).await?;
    let calls = known.reader.calls();
    let shown = &calls[calls.len().saturating_sub(CALLS_LIMIT)..];
    let listed: Vec<Value> = shown.iter().map(calls::ModelCall::encode).collect();
    Ok(json!({ "calls": listed, "left_out": calls.len() - shown.len() }))
}

async fn read(sources: &Sources<'_>, session: &SessionId, known: &mut Known) -> Result<(), Error> {
    let mut follow = sources.archive.follow(session, Cursor::after(known.head)).await?;
    while known.head < follow.head() {
        let Some(items) = follow.next().await? else { break };
        for item in &items {
            if let Item::Event(record) = item {
                known.reader.take(record, sources.models);
            }
        }
        known.head = follow.position().seq;
    }
    Ok(())
}
