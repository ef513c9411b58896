//! The journal and the list of sessions.

use std::cmp::Reverse;
use std::future::ready;
use std::sync::Arc;

use quintet_kernel::card::{Card, Fork};
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{
    Alias, Batch, BoxFuture, Directory, Journal, Lease, Page, StorageError,
};

use super::{Contents, History, Session, Store};
use crate::lock;

impl Journal for Store {
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
}

impl Directory for Store {
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        let contents = lock(&self.contents);
        let mut sessions: Vec<_> = contents.sessions.values().collect();
        sessions.sort_by_key(|session| Reverse((session.card.created, session.rank)));
        let cards = sessions.into_iter().take(limit).map(|session| session.card.clone()).collect();
        Box::pin(ready(Ok(cards)))
    }

    fn open(&self) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        let contents = lock(&self.contents);
        let mut open: Vec<_> = contents.sessions.iter().filter(|(_, s)| s.card.open).collect();
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
    fn append(&mut self, lease: &Lease, expected: Seq, batch: Batch) -> Result<Seq, StorageError> {
        if lease.epoch != self.epoch {
            return Err(StorageError::Fenced);
        }
        let head = self.sessions.get(&lease.session).map_or(0, |session| session.history.head());
        if head != expected {
            return Err(StorageError::Conflict(head));
        }
        let rank = self.next_rank();
        let session = self.sessions.entry(lease.session.clone()).or_insert_with(|| Session {
            rank,
            history: Arc::default(),
            card: batch.card.clone(),
        });
        session.history.append(&batch);
        session.card = batch.card;
        Ok(session.history.head())
    }

    fn fork(&mut self, lease: &Lease, from: &Fork, batch: Batch) -> Result<Seq, StorageError> {
        if lease.epoch != self.epoch {
            return Err(StorageError::Fenced);
        }
        if let Some(session) = self.sessions.get(&lease.session) {
            return Err(StorageError::Conflict(session.history.head()));
        }
        let missing = || StorageError::Missing(format!("event {} of {}", from.at, from.parent));
        let parent = self.sessions.get(&from.parent).ok_or_else(missing)?;
        let history = History::fork(&parent.history, from.at).ok_or_else(missing)?;
        history.append(&batch);
        let (rank, head) = (self.next_rank(), history.head());
        let session = Session { rank, history: Arc::new(history), card: batch.card };
        self.sessions.insert(lease.session.clone(), session);
        Ok(head)
    }

    fn next_rank(&self) -> usize {
        self.sessions.values().map(|session| session.rank + 1).max().unwrap_or(0)
    }

    fn erase(&mut self, lease: &Lease) -> Result<(), StorageError> {
        if lease.epoch != self.epoch {
            return Err(StorageError::Fenced);
        }
        if self.forks(&lease.session).is_empty() {
            self.front_ends.forget(&lease.session);
        }
        if let Some(session) = self.sessions.remove(&lease.session) {
            self.loose.extend(session.history.names());
        }
        self.drafts.remove(&lease.session);
        Ok(())
    }
}
