//! One live session: a task that owns its state.
//!
//! [`Task`] wakes it, starts it over when storage failed under it and lets it go when it has nothing
//! to do; [`live`] is what it does in between.

mod asking;
pub(crate) mod flight;
pub(crate) mod keep;
mod live;
mod pending;
mod work;

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, Receipt, Removals as _, StorageError};
use quintet_kernel::{SessionId, State};
use tokio::sync::{mpsc, oneshot};

use crate::load::load;
use crate::runtime::{Runtime, Shared};
use crate::session::live::{End, Erased, Live};

pub(crate) use work::summarize;

/// A letter to a session.
pub(crate) enum Mail {
    /// Carry this out.
    Submit(Command, oneshot::Sender<Delivery>),
    /// Show yourself.
    View(oneshot::Sender<Result<Arc<State>, Error>>),
    /// End what you do and be gone for good.
    Erase(oneshot::Sender<Result<(), Error>>),
}

/// What became of a letter.
pub(crate) enum Delivery {
    /// It was answered.
    Answered(Result<Receipt, Error>),
    /// It was not read; send it again.
    Gone(Command),
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With nothing.
    New,
    /// From its journal.
    Load,
}

/// How long to leave storage alone after it failed.
const BREATH: Duration = Duration::from_millis(500);

/// The task of one session.
pub(crate) struct Task {
    shared: Arc<Shared>,
    id: SessionId,
    mail: mpsc::Receiver<Mail>,
}

impl Task {
    pub(crate) fn new(shared: Arc<Shared>, id: SessionId, mail: mpsc::Receiver<Mail>) -> Self {
        Self { shared, id, mail }
    }

    pub(crate) async fn run(mut self, begin: Begin) {
        let mut begin = begin;
        while !self.shared.closing.is_cancelled() {
            let live = match self.wake(begin).await {
                Ok(live) => live,
                Err(error) => return self.give_up(&error).await,
            };
            match live.run(&mut self.mail).await {
                End::Idle => return self.retire().await,
                End::Closing => break,
                End::Erased(gone) => return self.erase(*gone).await,
                // Two owners that take a session from each other would never end.
                End::Broken(error @ StorageError::Fenced) => {
                    return self.give_up(&error.into()).await;
                }
                End::Broken(error) => {
                    tracing::error!(session = %self.id, %error, "storage failed; reading the session again");
                    begin = Begin::Load;
                    self.breathe().await;
                }
            }
        }
        self.answer_all(|| Error::Closing).await;
    }

    async fn breathe(&self) {
        tokio::select! {
            () = tokio::time::sleep(BREATH) => {}
            () = self.shared.closing.cancelled() => {}
        }
    }

    async fn wake(&self, begin: Begin) -> Result<Live, Error> {
        match begin {
            Begin::New => {
                let lease = self.shared.parts.leases.acquire(&self.id).await?;
                let state = State::new(self.id.clone(), Arc::clone(&self.shared.parts.rules));
                Ok(Live::new(Arc::clone(&self.shared), state, lease))
            }
            Begin::Load => {
                let loaded = load(&self.shared.parts, &self.id).await?;
                let added: usize = loaded.recovered.iter().map(Vec::len).sum();
                let head = loaded.state.head - added as u64;
                let mut live = Live::new(Arc::clone(&self.shared), loaded.state, loaded.lease);
                live.snapshot = loaded.snapshot;
                live.resume(head, loaded.recovered);
                Ok(live)
            }
        }
    }

    /// Letters that came in while it fell asleep go back to their senders, who wake it again.
    async fn retire(mut self) {
        self.leave();
        while let Some(mail) = self.mail.recv().await {
            if let Mail::Submit(command, reply) = mail {
                let _ = reply.send(Delivery::Gone(command));
            }
        }
    }

    /// Takes the session away; whoever writes to it or follows it is told that it is not there.
    ///
    /// Those that worked for it go first: if the daemon dies in between, it is there to be taken away
    /// again.
    async fn erase(self, Erased { lease, subagents, reply }: Erased) {
        let parts = &self.shared.parts;
        let erased = async {
            let runtime = Runtime::of(Arc::clone(&self.shared));
            for subagent in subagents {
                match runtime.remove(&subagent).await {
                    Ok(()) | Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(parts.journal.erase(&lease).await?)
        };
        if let Err(error) = erased.await {
            let why = error.to_string();
            let _ = reply.send(Err(error));
            return self.give_up(&StorageError::Unavailable(why).into()).await;
        }
        parts.drafts.clear(&self.id);
        parts.drafts.release(&self.id);
        self.shared.tail(&self.id).end();
        parts.hints.iter().for_each(|hint| hint.erased(&self.id));
        let _ = reply.send(Ok(()));
        let id = self.id.clone();
        self.answer_all(|| Error::NotFound(id.clone())).await;
    }

    async fn give_up(self, error: &Error) {
        tracing::error!(session = %self.id, %error, "the session is let go");
        let id = self.id.clone();
        self.answer_all(|| match error {
            Error::Storage(error) => Error::Storage(error.clone()),
            Error::NotFound(_)
            | Error::Refused(_)
            | Error::Ahead(..)
            | Error::ReadOnly
            | Error::Closing => Error::NotFound(id.clone()),
        })
        .await;
    }

    async fn answer_all(mut self, error: impl Fn() -> Error) {
        self.leave();
        while let Some(mail) = self.mail.recv().await {
            match mail {
                Mail::Submit(_, reply) => {
                    let _ = reply.send(Delivery::Answered(Err(error())));
                }
                Mail::View(reply) => {
                    let _ = reply.send(Err(error()));
                }
                Mail::Erase(reply) => {
                    let _ = reply.send(Err(error()));
                }
            }
        }
    }

    /// From here on letters reach a new task; what was sent before must still be read to the end.
    fn leave(&mut self) {
        self.mail.close();
        self.shared.retire(&self.id);
    }
}

/// Also a task that panics leaves, or nobody could ever wake its session again.
impl Drop for Task {
    fn drop(&mut self) {
        self.leave();
    }
}
