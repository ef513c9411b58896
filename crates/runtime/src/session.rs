//! The task that owns the state of one session.
//!
//! [`SessionTask`] loads the session, restarts it after a storage failure and ends it when it has
//! no work; [`command_loop`] runs in between.

mod call_questions;
mod command_loop;
mod effects;
mod hibernation;
mod idle_memory;
mod model_call;
mod model_stream;
mod overhead_meter;
mod pending_appends;
mod publish;
pub(crate) mod recovery;
mod shutdown;
pub(crate) mod store_output;
pub(crate) mod text_buffer;
mod tool_calls;
mod wake_timer;

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, Receipt, Sessions as _, StorageError};
use quintet_kernel::{SessionId, SessionSummary, State, Status};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::runtime::{Runtime, Shared};
use crate::session::command_loop::{LiveEnd, LiveSession, PendingDelete};
use crate::session::recovery::load;

pub(crate) use effects::summarize;

/// A message to a session's task.
pub(crate) enum SessionMessage {
    /// Execute a command. Boxed, because the channel allocates space for several messages.
    Submit(Box<SubmittedCommand>, oneshot::Sender<CommandReply>),
    /// Return the current state.
    View(oneshot::Sender<Result<Arc<State>, Error>>),
    /// Cancel all work and delete the session.
    Erase(oneshot::Sender<Result<(), Error>>),
}

impl SessionMessage {
    /// Replies with an error.
    fn fail(self, error: Error) {
        // A client that disconnected needs no reply.
        match self {
            Self::Submit(_, reply) => drop(reply.send(CommandReply::Answered(Err(error)))),
            Self::View(reply) => drop(reply.send(Err(error))),
            Self::Erase(reply) => drop(reply.send(Err(error))),
        }
    }
}

/// The reply to a submitted command.
pub(crate) enum CommandReply {
    /// The command was executed or refused.
    Answered(Result<Receipt, Error>),
    /// The task ended before it took the command, which must be sent again.
    NotTaken(Box<SubmittedCommand>),
}

/// A command on its way to a session's task.
pub(crate) struct SubmittedCommand {
    command: Command,
    /// When the command arrived at the runtime.
    received: Instant,
}

impl SubmittedCommand {
    /// A command that arrives now.
    pub(crate) fn new(command: Command) -> Box<Self> {
        Box::new(Self { command, received: Instant::now() })
    }
}

/// How a session's task starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartMode {
    /// With an empty state.
    New,
    /// From the journal.
    Load,
    /// From the journal, at low priority: the number of concurrent recoveries is limited.
    Recover,
}

/// The task of one session.
pub(crate) struct SessionTask {
    shared: Arc<Shared>,
    id: SessionId,
    messages: mpsc::Receiver<SessionMessage>,
    /// A message that arrived while the session could not process it.
    untaken: Option<SessionMessage>,
}

impl SessionTask {
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: SessionId,
        messages: mpsc::Receiver<SessionMessage>,
    ) -> Self {
        Self { shared, id, messages, untaken: None }
    }

    pub(crate) async fn run(mut self, begin: StartMode) {
        let (mut begin, mut backoff) = (begin, Backoff::new());
        while !self.shared.closing.is_cancelled() {
            let recovery_permit = match begin {
                StartMode::New | StartMode::Load => None,
                StartMode::Recover => self.recovery_permit().await,
            };
            if self.shared.closing.is_cancelled() {
                break;
            }
            match self.wake(begin).await {
                Err(error @ Error::Storage(StorageError::Held(_))) => {
                    let id = self.id.clone();
                    return self.answer_all(|| copy_error(&error, &id)).await;
                }
                Err(error) if begin == StartMode::New || !self.tries_again(&error).await => {
                    return self.give_up(&error).await;
                }
                Err(error) => {
                    tracing::error!(session = %self.id, %error, "could not load the session; retrying");
                }
                Ok(mut live) => {
                    live.recovery_permit = recovery_permit;
                    let since = Instant::now();
                    match live.run(&mut self.messages, self.untaken.take()).await {
                        LiveEnd::Idle => return self.retire().await,
                        LiveEnd::Closing => break,
                        LiveEnd::Deleted(gone) => return self.erase(*gone).await,
                        // Open work continues at the new owner, which may be this node again.
                        LiveEnd::Fenced if !self.has_open_turn().await => {
                            return self.retire().await;
                        }
                        LiveEnd::Fenced => {
                            tracing::warn!(session = %self.id, "the session's lease is lost");
                        }
                        // Two owners that take a session from each other would never stop.
                        LiveEnd::Broken(error @ StorageError::Fenced) => {
                            return self.give_up(&error.into()).await;
                        }
                        LiveEnd::Broken(error) => {
                            tracing::error!(session = %self.id, %error, "storage failed; loading the session again");
                        }
                    }
                    // A session that ran longer than any delay has recovered.
                    if since.elapsed() > Backoff::MAX_DELAY {
                        backoff = Backoff::new();
                    }
                }
            }
            begin = StartMode::Recover;
            self.wait(backoff.delay()).await;
        }
        self.answer_all(|| Error::Closing).await;
    }

    /// True if a session that could not be loaded must be retried because it has unfinished
    /// work. Waiting clients get the error.
    async fn tries_again(&mut self, error: &Error) -> bool {
        let Error::Storage(StorageError::Unavailable(_) | StorageError::Conflict(_)) = error else {
            return false;
        };
        while let Some(messages) = self.untaken.take().or_else(|| self.messages.try_recv().ok()) {
            messages.fail(copy_error(error, &self.id));
        }
        self.has_open_turn().await
    }

    /// True if a turn is open in the session, or that is unknown.
    async fn has_open_turn(&self) -> bool {
        match self.shared.deps.session_index.summary(&self.id).await {
            Ok(summary) => summary.is_some_and(|summary| summary.open),
            Err(_) => true,
        }
    }

    /// Waits for the delay or the next message.
    async fn wait(&mut self, delay: Duration) {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.shared.closing.cancelled() => {}
            messages = self.messages.recv() => self.untaken = messages,
        }
    }

    /// Waits for a recovery permit, unless a message arrives.
    async fn recovery_permit(&mut self) -> Option<OwnedSemaphorePermit> {
        if self.untaken.is_some() {
            return None;
        }
        tokio::select! {
            biased;
            recovery_permit = Arc::clone(&self.shared.recovering).acquire_owned() => recovery_permit.ok(),
            messages = self.messages.recv() => {
                self.untaken = messages;
                None
            }
            () = self.shared.closing.cancelled() => None,
        }
    }

    async fn wake(&self, begin: StartMode) -> Result<LiveSession, Error> {
        // Taken before the lease is acquired, so that a lease that becomes void at once is noticed.
        let void = self.shared.membership.void();
        self.shared.unpark(&self.id);
        if begin == StartMode::New {
            let lease = self.shared.deps.leases.acquire(&self.id).await?;
            let state = State::new(self.id.clone(), Arc::clone(&self.shared.deps.rules));
            return Ok(LiveSession::new(Arc::clone(&self.shared), state, lease, void));
        }
        let loaded = load(&self.shared.deps, &self.id).await?;
        let added: usize = loaded.recovered.iter().map(Vec::len).sum();
        let head = loaded.state.head - added as u64;
        let mut live = LiveSession::new(Arc::clone(&self.shared), loaded.state, loaded.lease, void);
        live.snapshot = loaded.snapshot;
        live.resume(head, loaded.recovered);
        Ok(live)
    }

    /// Ends the task. Commands that arrived meanwhile are returned to their senders, which
    /// start a new task.
    async fn retire(mut self) {
        self.leave();
        while let Some(messages) = self.messages.recv().await {
            if let SessionMessage::Submit(command, reply) = messages {
                let _ = reply.send(CommandReply::NotTaken(command));
            }
        }
    }

    /// Deletes the session and reports it as not found from then on.
    ///
    /// Subagents are deleted first: if the daemon dies in between, their parent still
    /// exists and the deletion can be repeated.
    async fn erase(self, PendingDelete { lease, subagents, reply }: PendingDelete) {
        let deps = &self.shared.deps;
        let erased = async {
            let runtime = Runtime::of(Arc::clone(&self.shared));
            for subagent in subagents {
                match runtime.remove(&subagent).await {
                    Ok(()) | Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(deps.journal.erase(&lease).await?)
        };
        if let Err(error) = erased.await {
            let why = error.to_string();
            let _ = reply.send(Err(error));
            return self.give_up(&StorageError::Unavailable(why).into()).await;
        }
        self.shared.release(&lease).await;
        deps.drafts.clear(&self.id);
        deps.drafts.release(&self.id);
        self.shared.tail(&self.id).end();
        deps.observers.iter().for_each(|observer| observer.erased(&self.id));
        let _ = reply.send(Ok(()));
        let id = self.id.clone();
        self.answer_all(|| Error::NotFound(id.clone())).await;
    }

    async fn give_up(self, error: &Error) {
        tracing::error!(session = %self.id, %error, "giving up on the session");
        if let Error::Storage(damage @ StorageError::Damaged(_)) = error
            && let Err(error) = self.mark_failed(damage).await
        {
            tracing::error!(session = %self.id, %error, "could not mark the damaged session as failed");
        }
        let id = self.id.clone();
        self.answer_all(|| copy_error(error, &id)).await;
    }

    /// Marks a session that cannot be decoded as failed in its summary.
    async fn mark_failed(&self, damage: &StorageError) -> Result<(), StorageError> {
        let deps = &self.shared.deps;
        let Some(summary) =
            deps.session_index.summary(&self.id).await?.filter(|summary| summary.open)
        else {
            return Ok(());
        };
        let lease = deps.leases.acquire(&self.id).await?;
        let (status, error) = (Status::Failed, Some(damage.to_string()));
        let updated = deps
            .session_index
            .update(&lease, SessionSummary { status, error, open: false, ..summary });
        let updated = updated.await;
        self.shared.release(&lease).await;
        updated
    }

    async fn answer_all(mut self, error: impl Fn() -> Error) {
        self.leave();
        self.untaken.take().into_iter().for_each(|messages| messages.fail(error()));
        while let Some(messages) = self.messages.recv().await {
            messages.fail(error());
        }
    }

    /// Closes the channel: later messages reach a new task, earlier ones must still be
    /// taken.
    fn leave(&mut self) {
        self.messages.close();
        self.shared.retire(&self.id);
    }
}

/// The same error for another receiver.
fn copy_error(error: &Error, id: &SessionId) -> Error {
    match error {
        Error::Storage(error) => Error::Storage(error.clone()),
        Error::NotFound(_)
        | Error::Refused(_)
        | Error::Ahead(..)
        | Error::ReadOnly
        | Error::Closing => Error::NotFound(id.clone()),
    }
}

/// A task that panics unregisters itself, too, or its session could never be loaded again. Its
/// work continues after a delay in another task.
impl Drop for SessionTask {
    fn drop(&mut self) {
        self.leave();
        if std::thread::panicking() {
            self.shared.wake_later(&self.id, Backoff::MAX_DELAY);
        }
    }
}
