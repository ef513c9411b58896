//! A follower: reads a session's journal and, once it has caught up, the session's tail.

use std::sync::Arc;

use quintet_kernel::event::Seq;
use quintet_kernel::port::{BoxFuture, Error, Follower, Journal, Page, StorageError};
use quintet_kernel::{Cursor, Item, ItemReader, Record, SessionId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::tail::{Tail, TailRead};

const READ_PAGE: Page = Page { events: 256, bytes: 256 * 1024 };

/// A follower of a session that may be running.
pub(crate) struct LiveFollower {
    pub(crate) session: SessionId,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) changed: watch::Receiver<()>,
    pub(crate) closed: CancellationToken,
    pub(crate) reader: ItemReader,
    pub(crate) progress_seen: u64,
    pub(crate) head: Seq,
    /// True if other nodes may write the session's journal.
    pub(crate) shared: bool,
}

impl Follower for LiveFollower {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>> {
        Box::pin(self.advance())
    }

    fn head(&self) -> Seq {
        self.head
    }

    fn position(&self) -> Cursor {
        self.reader.cursor()
    }
}

impl LiveFollower {
    async fn advance(&mut self) -> Result<Option<Vec<Item>>, Error> {
        // Events from before this follower come from the journal; the tail may not have them.
        if self.seq() < self.head {
            return Ok(Some(self.page().await?));
        }
        loop {
            // Checked first: items that were published before the end are still returned.
            let over = self.closed.is_cancelled();
            self.changed.mark_unchanged();
            match self.tail.find(&mut self.reader, &mut self.progress_seen) {
                TailRead::Items(items) if items.is_empty() => {}
                TailRead::Items(items) => return Ok(Some(items)),
                TailRead::Behind => {
                    let from = self.seq();
                    let items = self.page().await?;
                    if !items.is_empty() {
                        return Ok(Some(items));
                    }
                    if self.seq() == from {
                        self.found_nothing(from).await?;
                    }
                }
                TailRead::Gone => return Err(Error::NotFound(self.session.clone())),
                TailRead::Nothing if over => return Ok(None),
                TailRead::Nothing => tokio::select! {
                    _ = self.changed.changed() => {}
                    () = self.closed.cancelled() => {}
                },
            }
        }
    }

    /// Handles a tail that reports events which are not in the journal: the session was deleted, or another
    /// node reported too many.
    async fn found_nothing(&self, from: Seq) -> Result<(), Error> {
        match self.journal.head(&self.session).await? {
            None => Err(Error::NotFound(self.session.clone())),
            Some(head) if self.shared && head == from => {
                self.tail.begin(head);
                Ok(())
            }
            Some(_) => Err(StorageError::Missing(format!("events after {from}")).into()),
        }
    }

    /// Reads the next page of the journal. Advances even if nothing in the page is new to
    /// this follower.
    async fn page(&mut self) -> Result<Vec<Item>, Error> {
        let records = self.read().await?;
        if records.is_empty() {
            // Shorter than reported: never wait for events that do not exist.
            self.head = self.seq();
        }
        let mut items = Vec::with_capacity(records.len());
        for record in records {
            self.reader.take(&Arc::new(record), &mut items);
        }
        Ok(items)
    }

    /// The next page of the journal. Retries until shutdown if storage is unavailable: a
    /// client that lost its position would have to start over.
    async fn read(&self) -> Result<Vec<Record>, StorageError> {
        let mut backoff = Backoff::new();
        loop {
            let error = match self.journal.read(&self.session, self.seq(), READ_PAGE).await {
                Err(error @ StorageError::Unavailable(_)) => error,
                read => return read,
            };
            tracing::warn!(session = %self.session, %error, "storage is unavailable; a follower waits");
            tokio::select! {
                () = backoff.wait() => {}
                () = self.closed.cancelled() => return Err(error),
            }
        }
    }

    fn seq(&self) -> Seq {
        self.reader.cursor().seq
    }
}
