//! Appends under way, oldest first. Nobody is told of an event before its append is through.

use std::collections::VecDeque;
use std::future;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{Batch, BoxFuture, Error, Journal, Lease, Receipt, StorageError};
use quintet_kernel::{Card, SessionId, State};
use tokio::sync::oneshot;

use crate::session::Delivery;

/// The reply that waits for an append.
pub(super) enum Answer {
    /// The sender of a command.
    Receipt(oneshot::Sender<Delivery>, Receipt),
    /// A request to see the session.
    View(oneshot::Sender<Result<Arc<State>, Error>>, Arc<State>),
}

impl Answer {
    /// The records behind a command are durable.
    pub(super) fn receipt(
        reply: oneshot::Sender<Delivery>,
        session: &SessionId,
        records: Vec<Arc<Record>>,
    ) -> Self {
        Self::Receipt(reply, Receipt { session: session.clone(), records })
    }

    /// A client that went away needs no answer.
    pub(super) fn give(self) {
        match self {
            Self::Receipt(reply, receipt) => {
                let _ = reply.send(Delivery::Answered(Ok(receipt)));
            }
            Self::View(reply, state) => {
                let _ = reply.send(Ok(state));
            }
        }
    }

    pub(super) fn fail(self, error: &StorageError) {
        match self {
            Self::Receipt(reply, _) => {
                let _ = reply.send(Delivery::Answered(Err(error.clone().into())));
            }
            Self::View(reply, _) => {
                let _ = reply.send(Err(error.clone().into()));
            }
        }
    }
}

/// One append under way.
pub(super) struct Pending {
    append: BoxFuture<'static, Result<Seq, StorageError>>,
    pub(super) records: Vec<Arc<Record>>,
    pub(super) answers: Vec<Answer>,
}

impl Pending {
    /// Hands records to the journal at once: what follows from them, such as the assembly of a
    /// prompt, is done while they are synced.
    pub(super) fn begin(
        journal: &dyn Journal,
        lease: &Lease,
        records: Vec<Arc<Record>>,
        card: Card,
        answer: Option<Answer>,
    ) -> Self {
        let expected = records[0].seq - 1;
        let batch = Batch { at: records[0].at, records: records.clone(), card };
        let append = journal.append(lease, expected, batch);
        Self { append, records, answers: answer.into_iter().collect() }
    }

    /// Whether followers learn of nothing but text from it.
    pub(super) fn only_text(&self) -> bool {
        self.records.iter().all(is_text)
    }

    pub(super) fn has_text(&self) -> bool {
        self.records.iter().any(is_text)
    }
}

fn is_text(record: &Arc<Record>) -> bool {
    matches!(record.event, Event::TextAppended { .. })
}

/// Waits for the oldest append; for ever if there is none. Safe to drop and call again.
pub(super) async fn oldest(queue: &mut VecDeque<Pending>) -> Result<Seq, StorageError> {
    match queue.front_mut() {
        Some(pending) => pending.append.as_mut().await,
        None => future::pending().await,
    }
}
