//! Sessions at a glance.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::card::Card;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{BoxFuture, Catalogue, StorageError};

use super::{Contents, Session, Store};
use crate::lock;

impl Catalogue for Store {
    fn card(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Card>, StorageError>> {
        let card = lock(&self.contents).sessions.get(session).map(|found| found.card.clone());
        Box::pin(ready(Ok(card)))
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        let contents = lock(&self.contents);
        let here = |session: &&Session| workspace.is_none_or(|path| session.card.workspace == path);
        let mut sessions: Vec<_> = contents.sessions.values().filter(here).collect();
        sessions.sort_by_key(|session| Reverse((session.card.updated, session.rank)));
        let cards = sessions.into_iter().take(limit).map(|session| session.card.clone()).collect();
        Box::pin(ready(Ok(cards)))
    }

    fn forks(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        Box::pin(ready(Ok(lock(&self.contents).forks(session))))
    }
}

impl Contents {
    /// Deletes the blobs that nobody refers to any more. Nobody may be about to.
    pub(super) fn clear_away(&mut self) {
        let needed: HashSet<String> =
            self.sessions.values().flat_map(|session| session.history.names()).collect();
        let loose = std::mem::take(&mut self.loose);
        self.blobs
            .retain(|blob, _| !loose.contains(blob.as_str()) || needed.contains(blob.as_str()));
    }

    pub(super) fn forks(&self, session: &SessionId) -> Vec<Card> {
        let Some(parent) = self.sessions.get(session) else { return Vec::new() };
        let branched = |other: &&Session| {
            let shared = other.history.shared.as_ref();
            shared.is_some_and(|shared| Arc::ptr_eq(&shared.with, &parent.history))
        };
        let mut forks: Vec<_> = self.sessions.values().filter(branched).collect();
        forks.sort_by_key(|fork| fork.rank);
        forks.into_iter().map(|fork| fork.card.clone()).collect()
    }
}
