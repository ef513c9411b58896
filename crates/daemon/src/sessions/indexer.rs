//! Updates the search index from the journal.
//!
//! Shared events are indexed once: a fork's messages begin at its fork point, as long as the source session
//! exists.

use std::collections::HashMap;
use std::sync::Arc;

use quintet_dialects::change_feed::Change;
use quintet_dialects::projection::{Projection, ProjectionError};
use quintet_kernel::event::Seq;
use quintet_kernel::port::{Journal, Page, SessionIndex, StorageError};
use quintet_kernel::session_summary::Fork;
use quintet_kernel::{SessionId, SessionSummary, Time};
use quintet_memory::{Collector, MessageIndex, SessionUpdate};

/// The size of a read from a session.
const PAGE: Page = Page { events: 512, bytes: 1024 * 1024 };

/// The number of streaming answers held in memory. Others are read again when they are complete.
const OPEN_LIMIT: usize = 64;

/// The search index as a projection of the journal.
pub(crate) struct Indexer {
    index: MessageIndex,
    journal: Arc<dyn Journal>,
    directory: Arc<dyn SessionIndex>,
    since: Time,
    /// Sessions with a streaming answer.
    open: HashMap<SessionId, Collector>,
}

impl Indexer {
    /// Fails if the index can neither be read nor created.
    pub(crate) async fn open(
        index: MessageIndex,
        journal: Arc<dyn Journal>,
        directory: Arc<dyn SessionIndex>,
    ) -> Result<Self, StorageError> {
        let since = index.since().await?;
        Ok(Self { index, journal, directory, since, open: HashMap::new() })
    }

    async fn read_on(&mut self, session: &SessionId) -> Result<(), ProjectionError> {
        let Some(summary) = self.directory.summary(session).await? else {
            return self.remove(session).await;
        };
        let mut known = self.index.position(session).await?;
        if known.is_some_and(|known| known > summary.head) {
            // The journal is older than the index, for example because it was restored from a
            // backup.
            self.index.remove(session).await?;
            known = None;
        }
        let open = self.open.remove(session);
        let (mut collector, parent) = match known {
            Some(known) => {
                let open = open.filter(|open| open.position() == known);
                (open.unwrap_or(Collector::new(known)), None)
            }
            None => {
                let fork = self.branch(&summary).await?;
                let at = fork.as_ref().map_or(0, |fork| fork.at);
                (Collector::new(at), fork.map(|fork| fork.parent))
            }
        };
        loop {
            let records = self.journal.read(session, collector.read(), PAGE).await?;
            let messages: Vec<_> =
                records.iter().filter_map(|record| collector.take(record)).collect();
            if !messages.is_empty() || known != Some(collector.position()) {
                let (session, parent) = (session.clone(), parent.clone());
                let workspace = summary.workspace.to_string_lossy().into_owned();
                let (title, position) = (summary.title.clone(), collector.position());
                let update =
                    SessionUpdate { session, parent, title, workspace, position, messages };
                self.index.update(update).await?;
            }
            if records.is_empty() || collector.read() >= summary.head {
                break;
            }
        }
        if collector.position() < collector.read() && self.open.len() < OPEN_LIMIT {
            self.open.insert(session.clone(), collector);
        }
        Ok(())
    }

    /// The fork point of a session whose parent still exists.
    async fn branch(&self, summary: &SessionSummary) -> Result<Option<Fork>, ProjectionError> {
        let Some(fork) = &summary.forked else { return Ok(None) };
        let parent = self.directory.summary(&fork.parent).await?;
        Ok(parent.map(|_| fork.clone()))
    }

    async fn remove(&mut self, session: &SessionId) -> Result<(), ProjectionError> {
        self.open.remove(session);
        for fork in self.index.remove(session).await? {
            Box::pin(self.read_on(&fork)).await?;
        }
        Ok(())
    }
}

impl Projection for Indexer {
    const NAME: &'static str = "search index";

    fn since(&self) -> Time {
        self.since
    }

    async fn has(&mut self, session: &SessionId, head: Seq) -> bool {
        self.index.position(session).await.is_ok_and(|position| position == Some(head))
    }

    async fn erased(&mut self) -> Result<Vec<SessionId>, ProjectionError> {
        Ok(self.index.sessions_to_reindex().await?)
    }

    async fn update(&mut self, session: &SessionId, change: Change) -> Result<(), ProjectionError> {
        match change {
            Change::Head(_) => self.read_on(session).await,
            Change::Erased => self.remove(session).await,
        }
    }

    async fn checkpoint(&mut self, since: Time) -> Result<(), ProjectionError> {
        self.index.checkpoint(since).await?;
        self.since = since;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
