//! Appends under way, oldest first. Nobody is told of an event before its append is through.

use std::collections::VecDeque;
use std::future;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{Batch, BoxFuture, Error, Journal, Lease, Receipt, StorageError};
use quintet_kernel::{Card, SessionId, State};
use tokio::sync::oneshot;

use crate::session::Delivery;

/// Who waits for an append.
pub(super) enum Answer {
    /// The sender of a command.
    Receipt(oneshot::Sender<Delivery>, Receipt),
    /// Somebody who wants to see the session.
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
    append: Append,
    pub(super) records: Vec<Arc<Record>>,
    pub(super) answers: Vec<Answer>,
}

enum Append {
    /// To be handed over. `after` says whether a question that is just going out comes first: then
    /// the disk does not get busy in its way.
    Waiting {
        batch: Option<Box<Batch>>,
        after: bool,
    },
    Started(BoxFuture<'static, Result<Seq, StorageError>>),
}

impl Pending {
    pub(super) fn new(records: Vec<Arc<Record>>, card: Card, answer: Option<Answer>) -> Self {
        let batch = Batch { at: records[0].at, records: records.clone(), card };
        let asks = |record: &Arc<Record>| matches!(record.event, Event::StepStarted { .. });
        let append =
            Append::Waiting { batch: Some(Box::new(batch)), after: records.iter().any(asks) };
        Self { append, records, answers: answer.into_iter().collect() }
    }

    /// Whether followers learn of nothing but text from it.
    pub(super) fn only_text(&self) -> bool {
        let is_text = |record: &Arc<Record>| matches!(record.event, Event::TextAppended { .. });
        self.records.iter().all(is_text)
    }

    fn start(&mut self, journal: &dyn Journal, lease: &Lease) {
        if let Append::Waiting { batch, .. } = &mut self.append
            && let Some(batch) = batch.take()
        {
            let expected = self.records[0].seq - 1;
            self.append = Append::Started(journal.append(lease, expected, *batch));
        }
    }

    /// Whether it should wait for a moment; only the first time it is asked.
    fn hesitates(&mut self) -> bool {
        match &mut self.append {
            Append::Waiting { after, .. } => std::mem::take(after),
            Append::Started(_) => false,
        }
    }
}

/// Hands over what is to be appended, in order, and waits for the oldest; for ever if there is none.
/// Safe to drop and call again.
pub(super) async fn oldest(
    queue: &mut VecDeque<Pending>,
    journal: &dyn Journal,
    lease: &Lease,
) -> Result<Seq, StorageError> {
    let hesitating =
        queue.iter_mut().filter_map(|pending| pending.hesitates().then_some(())).count();
    if hesitating > 0 {
        tokio::task::yield_now().await;
    }
    for pending in queue.iter_mut() {
        pending.start(journal, lease);
    }
    match queue.front_mut().map(|pending| &mut pending.append) {
        Some(Append::Started(append)) => append.as_mut().await,
        Some(Append::Waiting { .. }) => unreachable!("all were started"),
        None => future::pending().await,
    }
}
