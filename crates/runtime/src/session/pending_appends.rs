//! Events on their way to the journal: decided ones, which are collected into one append, and
//! appends in progress, oldest first. Events are published only after their append is durable.

use std::collections::VecDeque;
use std::future;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{Batch, BoxFuture, Error, Journal, Lease, Receipt, StorageError};
use quintet_kernel::{SessionId, SessionSummary, State};
use tokio::sync::oneshot;

use crate::session::CommandReply;

/// A reply that waits for an append.
pub(super) enum PendingReply {
    /// The reply to a command.
    Receipt(oneshot::Sender<CommandReply>, Receipt),
    /// The reply to a view request.
    View(oneshot::Sender<Result<Arc<State>, Error>>, Arc<State>),
}

impl PendingReply {
    /// The reply to a command with these records.
    pub(super) fn receipt(
        reply: oneshot::Sender<CommandReply>,
        session: &SessionId,
        records: Vec<Arc<Record>>,
    ) -> Self {
        Self::Receipt(reply, Receipt { session: session.clone(), records })
    }

    /// Sends the reply. A client that disconnected needs none.
    pub(super) fn give(self) {
        match self {
            Self::Receipt(reply, receipt) => {
                let _ = reply.send(CommandReply::Answered(Ok(receipt)));
            }
            Self::View(reply, state) => {
                let _ = reply.send(Ok(state));
            }
        }
    }

    pub(super) fn fail(self, error: &StorageError) {
        match self {
            Self::Receipt(reply, _) => {
                let _ = reply.send(CommandReply::Answered(Err(error.clone().into())));
            }
            Self::View(reply, _) => {
                let _ = reply.send(Err(error.clone().into()));
            }
        }
    }
}

/// Decided events that are not appended yet. A command and what follows from it at once (the
/// context of a turn, its first step) share one append and so one sync of the disk.
#[derive(Default)]
pub(super) struct DecidedEvents {
    records: Vec<Arc<Record>>,
    answers: Vec<PendingReply>,
}

impl DecidedEvents {
    pub(super) fn add(&mut self, records: Vec<Arc<Record>>, answer: Option<PendingReply>) {
        self.records.extend(records);
        self.answers.extend(answer);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn only_text(&self) -> bool {
        self.records.iter().all(is_text)
    }

    pub(super) fn has_text(&self) -> bool {
        self.records.iter().any(is_text)
    }

    pub(super) fn fail(self, error: &StorageError) {
        self.answers.into_iter().for_each(|answer| answer.fail(error));
    }
}

/// An append in progress.
pub(super) struct PendingAppend {
    append: BoxFuture<'static, Result<Seq, StorageError>>,
    pub(super) records: Vec<Arc<Record>>,
    pub(super) answers: Vec<PendingReply>,
}

impl PendingAppend {
    /// Starts an append at once, without waiting for it.
    pub(super) fn begin(
        journal: &dyn Journal,
        lease: &Lease,
        decided: DecidedEvents,
        summary: SessionSummary,
    ) -> Self {
        let DecidedEvents { records, answers } = decided;
        let expected = records[0].seq - 1;
        let batch = Batch { records: records.clone(), summary };
        let append = journal.append(lease, expected, batch);
        Self { append, records, answers }
    }

    /// True if the append holds only text.
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

/// Waits for the oldest append; forever without one. Cancel safe.
pub(super) async fn oldest_append(
    queue: &mut VecDeque<PendingAppend>,
) -> Result<Seq, StorageError> {
    match queue.front_mut() {
        Some(pending) => pending.append.as_mut().await,
        None => future::pending().await,
    }
}
