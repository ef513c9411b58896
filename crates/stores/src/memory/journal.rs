//! The journal in memory.

use std::future::ready;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{
    Batch, BoxFuture, Journal, Lease, Page, Snapshot, StorageError, Wake, Wakes,
};
use quintet_kernel::session_summary::{Fork, SessionSummary};

use super::{Contents, History, MemoryStore, StoredSession};
use crate::lock;

impl Journal for MemoryStore {
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        Box::pin(ready(lock(&self.contents).append(lease, expected, batch)))
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Record>, StorageError>> {
        let contents = lock(&self.contents);
        let found = contents.sessions.get(session).map(|session| session.history.read(after, page));
        Box::pin(ready(found.unwrap_or(Ok(Vec::new()))))
    }

    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>> {
        Box::pin(ready(lock(&self.contents).erase(lease)))
    }

    fn fork(
        &self,
        lease: &Lease,
        from: &Fork,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        Box::pin(ready(lock(&self.contents).fork(lease, from, batch)))
    }

    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>> {
        Box::pin(ready(Ok(lock(&self.contents)
            .sessions
            .get(session)
            .map(|found| found.history.head()))))
    }

    fn snapshot(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Snapshot>, StorageError>> {
        let contents = lock(&self.contents);
        let found = contents.sessions.get(session);
        Box::pin(ready(Ok(found.and_then(|found| found.history.snapshot(Seq::MAX)))))
    }

    fn keep_snapshot(
        &self,
        lease: &Lease,
        snapshot: Snapshot,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        let contents = lock(&self.contents);
        if let Err(fenced) = contents.check(lease) {
            return Box::pin(ready(Err(fenced)));
        }
        if let Some(found) = contents.sessions.get(&lease.session) {
            found.history.keep_snapshot(snapshot);
        }
        Box::pin(ready(Ok(())))
    }

    fn wakes(&self) -> Option<Box<dyn Wakes>> {
        self.node.as_ref().map(|_| self.notices())
    }
}

impl Contents {
    fn append(&mut self, lease: &Lease, expected: Seq, batch: Batch) -> Result<Seq, StorageError> {
        self.check(lease)?;
        let head = self.sessions.get(&lease.session).map_or(0, |session| session.history.head());
        if head != expected {
            return Err(StorageError::Conflict(head));
        }
        let only_text =
            batch.records.iter().all(|record| matches!(record.event, Event::TextAppended { .. }));
        let last = batch.records.last().map(|record| record.at);
        let rank = self.next_rank();
        let session = self.sessions.entry(lease.session.clone()).or_insert_with(|| StoredSession {
            rank,
            used: batch.summary.updated,
            history: Arc::default(),
            summary: batch.summary.clone(),
        });
        session.history.append(&batch);
        if !only_text || batch.records.is_empty() {
            session.used = batch.summary.updated;
            session.summary = batch.summary;
        }
        session.summary.head = session.history.head();
        session.summary.updated = last.unwrap_or(session.summary.updated);
        let head = session.summary.head;
        self.nodes.wake(&lease.session, Wake::Moved(head));
        Ok(head)
    }

    fn fork(&mut self, lease: &Lease, from: &Fork, batch: Batch) -> Result<Seq, StorageError> {
        self.check(lease)?;
        if let Some(session) = self.sessions.get(&lease.session) {
            return Err(StorageError::Conflict(session.history.head()));
        }
        let missing = || StorageError::Missing(format!("event {} of {}", from.at, from.parent));
        let parent = self.sessions.get(&from.parent).ok_or_else(missing)?;
        let history = History::fork(&parent.history, from.at).ok_or_else(missing)?;
        history.append(&batch);
        let (rank, head) = (self.next_rank(), history.head());
        let summary = SessionSummary { head, ..batch.summary };
        let session =
            StoredSession { rank, used: summary.updated, history: Arc::new(history), summary };
        self.sessions.insert(lease.session.clone(), session);
        self.front_ends.inherit(&from.parent, &lease.session);
        self.nodes.wake(&lease.session, Wake::Moved(head));
        Ok(head)
    }

    fn next_rank(&self) -> usize {
        self.sessions.values().map(|session| session.rank + 1).max().unwrap_or(0)
    }

    fn erase(&mut self, lease: &Lease) -> Result<(), StorageError> {
        self.check(lease)?;
        self.front_ends.forget(&lease.session);
        self.aliases.retain(|_, session| *session != lease.session);
        if let Some(session) = self.sessions.remove(&lease.session) {
            self.front_ends.note_erased(&lease.session);
            session.history.drop_snapshot();
            self.loose.extend(session.history.blobs());
        }
        self.drafts.remove(&lease.session);
        self.nodes.wake(&lease.session, Wake::Erased);
        Ok(())
    }
}
