//! Every decision about a tool call, in every protocol, as a line of `audit.jsonl`.
//!
//! Written behind the journal by a follower. A line names its session and event, so whatever a crash
//! left unwritten is found again from the journal, and nothing is written twice. A second file says how
//! far each session was read; without it all of them are read again.

mod entry;
mod file;
mod redact;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::event::{Event, Seq};
use quintet_kernel::port::{Hints, Sessions};
use quintet_kernel::{Card, Cursor, Item, SessionId};
use quintet_providers::Secret;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use entry::Trail;
use file::{Log, Place};
use redact::Redactor;

/// Changes are gathered for so long before they are written.
const GATHER: Duration = Duration::from_millis(500);

/// The audit log.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    folder: Arc<Path>,
    redactor: Arc<Redactor>,
    dirty: Arc<Dirty>,
}

#[derive(Debug, Default)]
struct Dirty {
    sessions: Mutex<HashMap<SessionId, Seq>>,
    changed: Notify,
}

impl Audit {
    /// A log in this folder, in which these secrets never stand.
    pub(crate) fn new(folder: &Path, secrets: Vec<Secret>) -> Self {
        let redactor = Arc::new(Redactor::new(secrets));
        Self { folder: folder.into(), redactor, dirty: Arc::default() }
    }

    /// Follows these sessions until told to stop; what is dirty then is still written.
    pub(crate) async fn run(self, sessions: Arc<dyn Sessions>, stop: CancellationToken) {
        let log = match Log::open(&self.folder).await {
            Ok(log) => log,
            Err(error) => return tracing::error!(%error, "the audit log cannot be written"),
        };
        let mut clerk = Clerk { sessions, log, redactor: self.redactor, agents: HashMap::new() };
        clerk.catch_up().await;
        loop {
            tokio::select! {
                () = self.dirty.changed.notified() => {}
                () = stop.cancelled() => break,
            }
            tokio::time::sleep(GATHER).await;
            clerk.write(self.dirty.take()).await;
        }
        clerk.write(self.dirty.take()).await;
    }
}

impl Hints for Audit {
    fn published(&self, session: &SessionId, head: Seq) {
        let mut dirty = self.dirty.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.insert(session.clone(), head);
        drop(dirty);
        self.dirty.changed.notify_one();
    }

    /// What was written down stays: that is what it is for.
    fn erased(&self, session: &SessionId) {
        self.dirty.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }
}

impl Dirty {
    fn take(&self) -> Vec<SessionId> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.drain().map(|(session, _)| session).collect()
    }
}

/// Who writes.
struct Clerk {
    sessions: Arc<dyn Sessions>,
    log: Log,
    redactor: Arc<Redactor>,
    /// For whom a session works, where that is known.
    agents: HashMap<SessionId, &'static str>,
}

impl Clerk {
    /// Sessions that changed just before a crash are behind, and so are those of a time without log.
    async fn catch_up(&mut self) {
        let cards = match self.sessions.list(usize::MAX).await {
            Ok(cards) => cards,
            Err(error) => return tracing::error!(%error, "the audit log is behind"),
        };
        let agent = |card: &Card| (card.id.clone(), entry::agent(&card.labels));
        self.agents = cards.iter().map(agent).collect();
        self.write(cards.into_iter().rev().map(|card| card.id).collect()).await;
    }

    async fn write(&mut self, sessions: Vec<SessionId>) {
        for session in sessions {
            if let Err(error) = self.bring_up_to_date(&session).await {
                tracing::error!(%session, %error, "the audit log is behind");
            }
        }
    }

    async fn bring_up_to_date(&mut self, session: &SessionId) -> anyhow::Result<()> {
        let Place { read, written } = self.log.place(session);
        let mut follow = self.sessions.follow(session, Cursor::after(read)).await?;
        let mut trail = Trail::new(session.clone(), self.agents.get(session).copied());
        let mut lines = Vec::new();
        let (mut at, mut newest) = (read, written);
        while follow.position().seq < follow.head() {
            let Some(items) = follow.next().await? else { break };
            for item in &items {
                let Item::Event(record) = item else { continue };
                if matches!(record.event, Event::Forked { .. }) {
                    // What came before was decided in another session, and is written down there.
                    lines.clear();
                    newest = record.seq;
                }
                let entry = trail.take(record).filter(|_| record.seq > written);
                if let Some(entry) = entry {
                    lines.extend(entry.line(&self.redactor));
                    newest = record.seq;
                }
            }
            at = follow.position().seq;
        }
        self.agents.extend(trail.agent().map(|agent| (session.clone(), agent)));
        // A call that is not over is read again next time, from its beginning.
        let read = trail.oldest().map_or(at, |oldest| oldest - 1);
        Ok(self.log.append(session, &lines, Place { read, written: newest }).await?)
    }
}
