//! The audit log: every decision about a tool call, in every protocol, as a line of `audit.jsonl`.
//!
//! A projection of the journal: each line names its session and event, so that lines that a crash
//! left unwritten are written later, and none is written twice. The position in each session is
//! stored in the database.

mod entry;
mod file;
mod redact;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use futures_util::future::try_join_all;
use quintet_dialects::change_feed::Change;
use quintet_dialects::projection::{Projection, ProjectionError};
use quintet_kernel::event::{Event, Seq};
use quintet_kernel::port::{Error, Preferences, Sessions};
use quintet_kernel::{Cursor, Item, SessionId, Time};
use quintet_providers::Secret;
use serde_json::{Value, json};

use entry::Trail;
use file::Log;
use redact::Redactor;

/// The settings space of the positions.
const SPACE: &str = "audit";
/// The name of the position of the whole log; not a valid session id.
const WHOLE: &str = "";

/// The audit log.
pub(crate) struct Audit {
    sessions: Arc<dyn Sessions>,
    positions: Arc<dyn Preferences>,
    redactor: Redactor,
    log: Log,
    since: Time,
    /// Sessions that changed since positions were last saved.
    active: HashMap<SessionId, Progress>,
    /// The last event with a line, of lines that are newer than the saved positions.
    found: HashMap<SessionId, Seq>,
}

/// The position of the log in a session.
#[derive(Clone, Debug)]
struct Progress {
    trail: Trail,
    /// The last event that was read.
    read: Seq,
    /// The last event with a line.
    written: Seq,
}

impl Audit {
    /// Opens the log in this folder; these secrets are redacted in it.
    pub(crate) async fn open(
        folder: &Path,
        secrets: Vec<Secret>,
        sessions: Arc<dyn Sessions>,
        positions: Arc<dyn Preferences>,
    ) -> Result<Self> {
        let whole = positions.preference(SPACE, WHOLE).await?.unwrap_or_default();
        let since = Time::from_micros(whole["since"].as_i64().unwrap_or_default());
        let (log, found) = Log::open(folder, whole["bytes"].as_u64().unwrap_or_default()).await?;
        let (redactor, active) = (Redactor::new(secrets), HashMap::new());
        Ok(Self { sessions, positions, redactor, log, since, active, found })
    }

    /// The saved position of the log in a session.
    async fn progress(&self, session: &SessionId) -> Result<Progress, ProjectionError> {
        let kept = self.positions.preference(SPACE, session.as_str()).await?;
        let Some(kept) = kept else { return self.beginning(session).await };
        let number = |name: &str| kept[name].as_u64().unwrap_or(0);
        let agent = kept["agent"].as_str().and_then(entry::known_agent);
        let trail = Trail::new(session.clone(), agent);
        let written = number("written").max(self.found(session));
        Ok(Progress { trail, read: number("read"), written })
    }

    /// The start of the log in a session. Shared events of a fork belong to the other session's
    /// lines.
    async fn beginning(&self, session: &SessionId) -> Result<Progress, ProjectionError> {
        let summary = self.sessions.summary(session).await?;
        let agent = summary.forked.is_some().then(|| entry::agent(&summary.labels));
        let trail = Trail::new(session.clone(), agent);
        let read = summary.forked.map_or(0, |fork| fork.at);
        Ok(Progress { trail, read, written: self.found(session) })
    }

    fn found(&self, session: &SessionId) -> Seq {
        self.found.get(session).copied().unwrap_or_default()
    }

    /// The positions that are newer than the saved ones. Lines before the position of the whole log
    /// are not read again, so every session with lines needs a position.
    async fn new_positions(&self) -> Result<Vec<(SessionId, Value)>, ProjectionError> {
        let mut positions = Vec::new();
        for session in self.found.keys().filter(|session| !self.active.contains_key(*session)) {
            match self.progress(session).await {
                Ok(progress) => positions.push((session.clone(), progress.position())),
                Err(ProjectionError::Session(Error::NotFound(_))) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        let active = self.active.iter().map(|(session, at)| (session.clone(), at.position()));
        positions.extend(active);
        Ok(positions)
    }

    async fn read_on(&mut self, session: &SessionId) -> Result<(), ProjectionError> {
        // A copy: if anything fails, the work is repeated from here.
        let mut progress = match self.active.get(session) {
            Some(progress) => progress.clone(),
            None => self.progress(session).await?,
        };
        let mut follow = self.sessions.follow(session, Cursor::after(progress.read)).await?;
        let mut lines = Vec::new();
        while follow.position().seq < follow.head() {
            let Some(items) = follow.next().await? else { break };
            items.iter().for_each(|item| progress.take(item, &self.redactor, &mut lines));
            progress.read = follow.position().seq;
        }
        self.log.append(&lines).await?;
        self.active.insert(session.clone(), progress);
        Ok(())
    }
}

impl Progress {
    fn take(&mut self, item: &Item, redactor: &Redactor, lines: &mut Vec<u8>) {
        let Item::Event(record) = item else { return };
        if matches!(record.event, Event::Forked { .. }) {
            // Earlier events belong to another session, which has their lines.
            lines.clear();
            self.written = record.seq;
        }
        let entry = self.trail.take(record).filter(|_| record.seq > self.written);
        if let Some(entry) = entry {
            lines.extend(entry.line(redactor));
            self.written = record.seq;
        }
    }

    /// An unfinished call is read again next time, from its request.
    fn position(&self) -> Value {
        let read = self.trail.oldest().map_or(self.read, |oldest| oldest - 1);
        json!({ "read": read, "written": self.written, "agent": self.trail.agent() })
    }
}

impl Projection for Audit {
    const NAME: &'static str = "audit log";

    fn since(&self) -> Time {
        self.since
    }

    async fn has(&mut self, session: &SessionId, head: Seq) -> bool {
        self.progress(session).await.is_ok_and(|progress| progress.read == head)
    }

    async fn update(&mut self, session: &SessionId, change: Change) -> Result<(), ProjectionError> {
        match change {
            Change::Head(_) => match self.read_on(session).await {
                // The lines of a deleted session stay in the log.
                Err(ProjectionError::Session(Error::NotFound(_))) => Ok(()),
                done => done,
            },
            Change::Erased => {
                self.active.remove(session);
                self.found.remove(session);
                Ok(self.positions.set_preference(SPACE, session.as_str(), Value::Null).await?)
            }
        }
    }

    async fn checkpoint(&mut self, since: Time) -> Result<(), ProjectionError> {
        let positions = self.new_positions().await?;
        let keep = |(session, position): (SessionId, Value)| {
            self.positions.set_preference(SPACE, session.as_str(), position)
        };
        // Queued together, so that they share commits.
        try_join_all(positions.into_iter().map(keep)).await?;
        let whole = json!({ "since": since.micros(), "bytes": self.log.bytes() });
        self.positions.set_preference(SPACE, WHOLE, whole).await?;
        self.since = since;
        self.active.clear();
        self.found.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
