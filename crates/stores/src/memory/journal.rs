//! The journal and the list of sessions.

use std::cmp::Reverse;
use std::future::ready;

use quintet_kernel::card::Card;
use quintet_kernel::codec;
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Batch, BoxFuture, Directory, Journal, Lease, Page, StorageError};

use super::{Contents, Kept, Session, Store};
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
        let found = contents.sessions.get(session).map(|session| session.read(after, page));
        Box::pin(ready(found.unwrap_or(Ok(Vec::new()))))
    }

    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>> {
        Box::pin(ready(lock(&self.contents).erase(lease)))
    }

    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>> {
        Box::pin(ready(Ok(lock(&self.contents).sessions.get(session).map(Session::head))))
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
}

impl Contents {
    fn append(&mut self, lease: &Lease, expected: Seq, batch: Batch) -> Result<Seq, StorageError> {
        if lease.epoch != self.epoch {
            return Err(StorageError::Fenced);
        }
        let head = self.sessions.get(&lease.session).map_or(0, Session::head);
        if head != expected {
            return Err(StorageError::Conflict(head));
        }
        let rank = self.sessions.values().map(|session| session.rank + 1).max().unwrap_or(0);
        let session = self.sessions.entry(lease.session.clone()).or_insert_with(|| Session {
            rank,
            events: Vec::new(),
            card: batch.card.clone(),
        });
        let bodies = batch.events.iter().map(codec::encode);
        session.events.extend(bodies.map(|body| Kept { at: batch.at, body }));
        session.card = batch.card;
        Ok(session.head())
    }

    fn erase(&mut self, lease: &Lease) -> Result<(), StorageError> {
        if lease.epoch != self.epoch {
            return Err(StorageError::Fenced);
        }
        self.sessions.remove(&lease.session);
        self.drafts.remove(&lease.session);
        Ok(())
    }
}

impl Session {
    fn head(&self) -> Seq {
        self.events.len() as Seq
    }

    fn read(&self, after: Seq, page: Page) -> Result<Vec<Record>, StorageError> {
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let mut records = Vec::new();
        let mut bytes = 0;
        let numbers = after.saturating_add(1)..;
        for (kept, seq) in self.events.iter().skip(skip).take(page.events).zip(numbers) {
            bytes += kept.body.len();
            if bytes > page.bytes && !records.is_empty() {
                break;
            }
            records.push(kept.record(seq)?);
        }
        Ok(records)
    }
}

impl Kept {
    fn record(&self, seq: Seq) -> Result<Record, StorageError> {
        let event = codec::decode(codec::VERSION, &self.body)
            .map_err(|error| StorageError::Damaged(format!("event {seq}: {error}")))?;
        Ok(Record { seq, at: self.at, event })
    }
}
