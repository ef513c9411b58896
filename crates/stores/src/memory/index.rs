//! The session index in memory.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::id::{BlobId, SessionId};
use quintet_kernel::port::{Alias, BoxFuture, Lease, SessionIndex, StorageError};
use quintet_kernel::session_summary::SessionSummary;

use super::{Contents, MemoryStore, StoredSession};
use crate::{blobs, lock};

impl SessionIndex for MemoryStore {
    fn summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<SessionSummary>, StorageError>> {
        let summary = lock(&self.contents).sessions.get(session).map(|found| found.summary.clone());
        Box::pin(ready(Ok(summary)))
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        let contents = lock(&self.contents);
        let here = |session: &&StoredSession| {
            workspace.is_none_or(|path| session.summary.workspace == path)
        };
        let mut sessions: Vec<_> = contents.sessions.values().filter(here).collect();
        sessions.sort_by_key(|session| Reverse((session.used, session.rank)));
        let summaries =
            sessions.into_iter().take(limit).map(|session| session.summary.clone()).collect();
        Box::pin(ready(Ok(summaries)))
    }

    fn forks(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        Box::pin(ready(Ok(lock(&self.contents).forks(session))))
    }

    fn update(
        &self,
        lease: &Lease,
        summary: SessionSummary,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        Box::pin(ready(lock(&self.contents).update(lease, summary)))
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, StorageError>> {
        let contents = lock(&self.contents);
        let mut sessions: Vec<_> = contents.sessions.values().collect();
        sessions.sort_by_key(|session| Reverse((session.summary.created, session.rank)));
        let summaries =
            sessions.into_iter().take(limit).map(|session| session.summary.clone()).collect();
        Box::pin(ready(Ok(summaries)))
    }

    fn open(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        let contents = lock(&self.contents);
        let mut open: Vec<_> = contents.sessions.iter().filter(|(_, s)| s.summary.open).collect();
        open.sort_by_key(|(_, session)| session.rank);
        Box::pin(ready(Ok(open.into_iter().map(|(id, _)| id.clone()).collect())))
    }

    fn alias(&self, alias: &Alias) -> BoxFuture<'_, Result<Option<SessionId>, StorageError>> {
        Box::pin(ready(Ok(lock(&self.contents).aliases.get(alias).cloned())))
    }

    fn set_alias(
        &self,
        alias: &Alias,
        session: &SessionId,
        instead_of: Option<&SessionId>,
    ) -> BoxFuture<'_, Result<SessionId, StorageError>> {
        let aliases = &mut lock(&self.contents).aliases;
        let holder = match aliases.get(alias) {
            Some(holder) if Some(holder) != instead_of => holder.clone(),
            _ => {
                aliases.insert(alias.clone(), session.clone());
                session.clone()
            }
        };
        Box::pin(ready(Ok(holder)))
    }
}

impl Contents {
    fn update(&mut self, lease: &Lease, summary: SessionSummary) -> Result<(), StorageError> {
        self.check(lease)?;
        let found = self.sessions.get_mut(&lease.session);
        let head = found.as_ref().map_or(0, |found| found.history.head());
        match found {
            Some(found) if head == summary.head => {
                (found.used, found.summary) = (summary.updated, summary);
                Ok(())
            }
            Some(_) | None => Err(StorageError::Conflict(head)),
        }
    }

    /// Stores a blob, which is loose until an event references it.
    pub(super) fn put(&mut self, content: Vec<u8>) -> BlobId {
        let blob = blobs::blob_id(&content);
        self.blobs.insert(blob.clone(), content);
        self.loose.insert(blob.clone());
        blob
    }

    /// Deletes unreferenced blobs. No command may be about to reference one.
    pub(super) fn delete_unreferenced(&mut self) {
        let needed: HashSet<BlobId> =
            self.sessions.values().flat_map(|session| session.history.blobs()).collect();
        let loose = std::mem::take(&mut self.loose);
        self.blobs.retain(|blob, _| !loose.contains(blob) || needed.contains(blob));
    }

    pub(super) fn forks(&self, session: &SessionId) -> Vec<SessionSummary> {
        let Some(parent) = self.sessions.get(session) else { return Vec::new() };
        let branched = |other: &&StoredSession| {
            let shared = other.history.shared.as_ref();
            shared.is_some_and(|shared| Arc::ptr_eq(&shared.with, &parent.history))
        };
        let mut forks: Vec<_> = self.sessions.values().filter(branched).collect();
        forks.sort_by_key(|fork| fork.rank);
        forks.into_iter().map(|fork| fork.summary.clone()).collect()
    }
}
