//! Read-only access to stored sessions. No session is started or recovered.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::event::Seq;
use quintet_kernel::policy::Rules;
use quintet_kernel::port::{BoxFuture, Error, Follower, Journal, Page, SessionIndex, Sessions};
use quintet_kernel::{Cursor, Item, ItemReader, SessionId, SessionSummary, State};

use crate::session::recovery::read;

const READ_PAGE: Page = Page { events: 1024, bytes: 4 * 1024 * 1024 };

/// Stored sessions, opened for reading only.
#[derive(Clone)]
pub struct Archive {
    journal: Arc<dyn Journal>,
    session_index: Arc<dyn SessionIndex>,
    rules: Arc<Rules>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Archive")
    }
}

impl Archive {
    /// An archive over these stores.
    pub fn new(
        journal: Arc<dyn Journal>,
        session_index: Arc<dyn SessionIndex>,
        rules: Arc<Rules>,
    ) -> Self {
        Self { journal, session_index, rules }
    }
}

impl Sessions for Archive {
    fn view(&self, session: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        let session = session.clone();
        Box::pin(async move {
            let (state, _) = read(&*self.journal, &self.rules, &session).await?;
            match state.created {
                Some(_) => Ok(Arc::new(state)),
                None => Err(Error::NotFound(session)),
            }
        })
    }

    fn follow(
        &self,
        session: &SessionId,
        from: Cursor,
    ) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        let (session, journal) = (session.clone(), Arc::clone(&self.journal));
        Box::pin(async move {
            let head = journal.head(&session).await?;
            let head = head.ok_or_else(|| Error::NotFound(session.clone()))?;
            if from.seq > head {
                return Err(Error::Ahead(from.seq, head));
            }
            Ok(Box::new(ArchiveFollower { session, journal, reader: from.into(), head })
                as Box<dyn Follower>)
        })
    }

    fn summary(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        let session = session.clone();
        Box::pin(async move {
            self.session_index.summary(&session).await?.ok_or(Error::NotFound(session))
        })
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        Box::pin(async move { Ok(self.session_index.list(limit).await?) })
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        let workspace = workspace.map(Path::to_path_buf);
        Box::pin(async move { Ok(self.session_index.recent(workspace.as_deref(), limit).await?) })
    }

    fn forks(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        let session = session.clone();
        Box::pin(async move { Ok(self.session_index.forks(&session).await?) })
    }
}

/// A follower that ends after the last stored event.
struct ArchiveFollower {
    session: SessionId,
    journal: Arc<dyn Journal>,
    reader: ItemReader,
    head: Seq,
}

impl Follower for ArchiveFollower {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>> {
        Box::pin(async move {
            let after = self.reader.cursor().seq;
            let records = self.journal.read(&self.session, after, READ_PAGE).await?;
            if records.is_empty() {
                return Ok(None);
            }
            let mut items = Vec::with_capacity(records.len());
            for record in records {
                self.reader.take(&Arc::new(record), &mut items);
            }
            Ok(Some(items))
        })
    }

    fn head(&self) -> Seq {
        self.head
    }

    fn position(&self) -> Cursor {
        self.reader.cursor()
    }
}
