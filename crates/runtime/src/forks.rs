//! Forks sessions.

use std::sync::Arc;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{Batch, Error, Page, Receipt, Sessions, StorageError};
use quintet_kernel::session_summary::{Fork, Status};
use quintet_kernel::{SessionId, SessionSummary};

use crate::runtime::Runtime;

const ONE_EVENT: Page = Page { events: 1, bytes: 1 };

impl Runtime {
    /// Forks a session. The cost does not depend on the length of the history, which is not
    /// read.
    pub(crate) async fn branch(
        &self,
        parent: SessionId,
        at: Option<Seq>,
    ) -> Result<Receipt, Error> {
        let deps = self.deps();
        let summary = Sessions::summary(self, &parent).await?;
        let head = deps.journal.head(&parent).await?;
        let head = head.ok_or_else(|| Error::NotFound(parent.clone()))?;
        let at = at.unwrap_or(head);
        if at == 0 || at > head {
            return Err(Error::Ahead(at, head));
        }
        let stamp = deps.clock.stamp();
        let child: SessionId = stamp.id();
        // If the fork shares only a part, its summary is recomputed in the background.
        let settled = summary.head == head && !summary.open;
        let open = at < head || !(settled || self.rests(&parent, at).await?);
        let event = Event::Forked { parent: parent.clone(), at };
        let record = Arc::new(Record { seq: at + 1, at: stamp.at, event });
        let from = Fork { parent, at };
        let summary = SessionSummary {
            id: child.clone(),
            created: stamp.at,
            updated: stamp.at,
            forked: Some(from.clone()),
            head: at + 1,
            status: Status::Active,
            error: None,
            open,
            ..summary
        };
        let lease = deps.leases.acquire(&child).await?;
        let batch = Batch { records: vec![Arc::clone(&record)], summary };
        deps.journal.fork(&lease, &from, batch).await?;
        self.shared().release(&lease).await;
        deps.observers.iter().for_each(|observer| observer.published(&child, at + 1));
        if open {
            // A turn that is open in the parent ends in the fork, in the background.
            self.wake(&child)?;
        }
        Ok(Receipt { session: child, records: vec![record] })
    }

    /// True if no work was in progress after this event.
    async fn rests(&self, session: &SessionId, seq: Seq) -> Result<bool, StorageError> {
        let records = self.deps().journal.read(session, seq - 1, ONE_EVENT).await?;
        let is_end = |record: &Record| {
            matches!(
                record.event,
                Event::TurnCompleted { .. }
                    | Event::TurnFailed { .. }
                    | Event::TurnCancelled { .. }
                    | Event::SessionCreated(_)
                    | Event::SessionClosed { .. }
            )
        };
        Ok(records.first().is_some_and(is_end))
    }
}
