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
use quintet_kernel::{Card, SessionId, State, Status};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::load::load;
use crate::runtime::{Runtime, Shared};
use crate::session::live::{End, Erased, Live};

pub(crate) use work::summarize;

/// A letter to a session.
pub(crate) enum Mail {
    /// Carry this out. Boxed, because a channel has room for several letters from the beginning.
    Submit(Box<Command>, oneshot::Sender<Delivery>),
    /// Show yourself.
    View(oneshot::Sender<Result<Arc<State>, Error>>),
    /// End what you do and be gone for good.
    Erase(oneshot::Sender<Result<(), Error>>),
}

impl Mail {
    /// Answers that it cannot be done.
    fn fail(self, error: Error) {
        // Whoever went away needs no answer.
        match self {
            Self::Submit(_, reply) => drop(reply.send(Delivery::Answered(Err(error)))),
            Self::View(reply) => drop(reply.send(Err(error))),
            Self::Erase(reply) => drop(reply.send(Err(error))),
        }
    }
}

/// What became of a letter.
pub(crate) enum Delivery {
    /// The command was answered.
    Answered(Result<Receipt, Error>),
    /// The command was not read; it must be sent again.
    Gone(Box<Command>),
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With nothing.
    New,
    /// From its journal.
    Load,
    /// From its journal, without hurry: a limited number of sessions is loaded this way at a time.
    Recover,
}

/// The task of one session.
pub(crate) struct Task {
    shared: Arc<Shared>,
    id: SessionId,
    mail: mpsc::Receiver<Mail>,
    /// What came while the session could not take it.
    unread: Option<Mail>,
}

impl Task {
    pub(crate) fn new(shared: Arc<Shared>, id: SessionId, mail: mpsc::Receiver<Mail>) -> Self {
        Self { shared, id, mail, unread: None }
    }

    pub(crate) async fn run(mut self, begin: Begin) {
        let (mut begin, mut backoff) = (begin, Backoff::new());
        while !self.shared.closing.is_cancelled() {
            let place = match begin {
                Begin::New | Begin::Load => None,
                Begin::Recover => self.place().await,
            };
            if self.shared.closing.is_cancelled() {
                break;
            }
            match self.wake(begin).await {
                Err(error @ Error::Storage(StorageError::Held(_))) => {
                    let id = self.id.clone();
                    return self.answer_all(|| same(&error, &id)).await;
                }
                Err(error) if begin == Begin::New || !self.tries_again(&error).await => {
                    return self.give_up(&error).await;
                }
                Err(error) => {
                    tracing::error!(session = %self.id, %error, "reading the session again");
                }
                Ok(mut live) => {
                    live.place = place;
                    let since = Instant::now();
                    match live.run(&mut self.mail, self.unread.take()).await {
                        End::Idle => return self.retire().await,
                        End::Closing => break,
                        End::Erased(gone) => return self.erase(*gone).await,
                        // What was under way goes on at the new owner, which may be this node once more.
                        End::Fenced if !self.has_open_turn().await => return self.retire().await,
                        End::Fenced => {
                            tracing::warn!(session = %self.id, "the session's lease is lost");
                        }
                        // Two owners that take a session from each other would never end.
                        End::Broken(error @ StorageError::Fenced) => {
                            return self.give_up(&error.into()).await;
                        }
                        End::Broken(error) => {
                            tracing::error!(session = %self.id, %error, "storage failed; reading the session again");
                        }
                    }
                    // What lasted longer than any delay got over what was wrong before.
                    if since.elapsed() > Backoff::LONGEST {
                        backoff = Backoff::new();
                    }
                }
            }
            begin = Begin::Recover;
            self.wait(backoff.delay()).await;
        }
        self.answer_all(|| Error::Closing).await;
    }

    /// Whether a session that cannot be read has to be: somebody must look after it as long as
    /// something is under way in it. Whoever waits for it is told what is wrong.
    async fn tries_again(&mut self, error: &Error) -> bool {
        let Error::Storage(StorageError::Unavailable(_) | StorageError::Conflict(_)) = error else {
            return false;
        };
        while let Some(mail) = self.unread.take().or_else(|| self.mail.try_recv().ok()) {
            mail.fail(same(error, &self.id));
        }
        self.has_open_turn().await
    }

    /// True unless nothing is under way in the session.
    async fn has_open_turn(&self) -> bool {
        match self.shared.parts.directory.card(&self.id).await {
            Ok(card) => card.is_some_and(|card| card.open),
            Err(_) => true,
        }
    }

    /// Waits, unless somebody wants something of the session.
    async fn wait(&mut self, delay: Duration) {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.shared.closing.cancelled() => {}
            mail = self.mail.recv() => self.unread = mail,
        }
    }

    /// Waits for a place among those that are loaded, unless somebody wants something of the session.
    async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        if self.unread.is_some() {
            return None;
        }
        tokio::select! {
            biased;
            place = Arc::clone(&self.shared.recovering).acquire_owned() => place.ok(),
            mail = self.mail.recv() => {
                self.unread = mail;
                None
            }
            () = self.shared.closing.cancelled() => None,
        }
    }

    async fn wake(&self, begin: Begin) -> Result<Live, Error> {
        // Known before the lease is asked for: one that is void at once is noticed, too.
        let void = self.shared.membership.void();
        self.shared.unpark(&self.id);
        if begin == Begin::New {
            let lease = self.shared.parts.leases.acquire(&self.id).await?;
            let state = State::new(self.id.clone(), Arc::clone(&self.shared.parts.rules));
            return Ok(Live::new(Arc::clone(&self.shared), state, lease, void));
        }
        let loaded = load(&self.shared.parts, &self.id).await?;
        let added: usize = loaded.recovered.iter().map(Vec::len).sum();
        let head = loaded.state.head - added as u64;
        let mut live = Live::new(Arc::clone(&self.shared), loaded.state, loaded.lease, void);
        live.snapshot = loaded.snapshot;
        live.resume(head, loaded.recovered);
        Ok(live)
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
    /// Subagents are deleted first: if the daemon dies in between, their parent is still there and
    /// the deletion can be repeated.
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
        self.shared.release(&lease).await;
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
        if let Error::Storage(damage @ StorageError::Damaged(_)) = error
            && let Err(error) = self.mark_failed(damage).await
        {
            tracing::error!(session = %self.id, %error, "lists do not say that the session is damaged");
        }
        let id = self.id.clone();
        self.answer_all(|| same(error, &id)).await;
    }

    /// Has lists say that a session failed which cannot be read: nothing goes on in it.
    async fn mark_failed(&self, damage: &StorageError) -> Result<(), StorageError> {
        let parts = &self.shared.parts;
        let Some(card) = parts.directory.card(&self.id).await?.filter(|card| card.open) else {
            return Ok(());
        };
        let lease = parts.leases.acquire(&self.id).await?;
        let (status, error) = (Status::Failed, Some(damage.to_string()));
        let updated = parts.directory.update(&lease, Card { status, error, open: false, ..card });
        let updated = updated.await;
        self.shared.release(&lease).await;
        updated
    }

    async fn answer_all(mut self, error: impl Fn() -> Error) {
        self.leave();
        self.unread.take().into_iter().for_each(|mail| mail.fail(error()));
        while let Some(mail) = self.mail.recv().await {
            mail.fail(error());
        }
    }

    /// From here on letters reach a new task; what was sent before must still be read to the end.
    fn leave(&mut self) {
        self.mail.close();
        self.shared.retire(&self.id);
    }
}

/// An error once more, for the next who is to be told.
fn same(error: &Error, id: &SessionId) -> Error {
    match error {
        Error::Storage(error) => Error::Storage(error.clone()),
        Error::NotFound(_)
        | Error::Refused(_)
        | Error::Ahead(..)
        | Error::ReadOnly
        | Error::Closing => Error::NotFound(id.clone()),
    }
}

/// Also a task that panics leaves, or nobody could ever wake its session again. What it was doing goes
/// on after a while, in another task.
impl Drop for Task {
    fn drop(&mut self) {
        self.leave();
        if std::thread::panicking() {
            self.shared.wake_later(&self.id, Backoff::LONGEST);
        }
    }
}
