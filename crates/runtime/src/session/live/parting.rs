//! How a live session ends before it is idle: storage failed, or the daemon shuts down.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, StorageError};
use quintet_kernel::session::Effect;
use quintet_kernel::tool::Ending;

use super::{End, Live, Waiting};
use crate::session::Delivery;
use crate::session::pending::{Answer, oldest};

/// What clients are told whose commands were kept or may have been.
const MOVED: &str = "the session moves to another node; whether this was done is not known";

impl Live {
    /// Ends the session after storage failed: waiting clients get the error, and running work is
    /// stopped, because its results could not be stored.
    pub(super) async fn broken(mut self, error: StorageError) -> End {
        for pending in self.pending.drain(..) {
            pending.answers.into_iter().for_each(|answer| answer.fail(&error));
        }
        let unfinished = match &error {
            // The command itself was kept, so it must not be sent to the new owner again.
            StorageError::Fenced => StorageError::Unavailable(MOVED.into()),
            error => error.clone(),
        };
        for Waiting { receipt, reply, .. } in self.waiting.drain(..) {
            Answer::Receipt(reply, receipt).fail(&unfinished);
        }
        self.asking = None;
        self.work.keep(is_undo);
        while self.work.done().await.is_some() {}
        match error {
            StorageError::Fenced if self.shared.parts.cluster.is_some() => End::Fenced,
            error => End::Broken(error),
        }
    }

    /// Ends the session after this node lost its leases: another node may own it by now. Whether what is
    /// on its way was kept is not known.
    pub(super) async fn fenced(self) -> End {
        let (shared, lease) = (Arc::clone(&self.shared), self.lease.clone());
        self.broken(StorageError::Unavailable(MOVED.into())).await;
        // Ignored, unless the lease was given after the others were lost.
        shared.release(&lease).await;
        End::Fenced
    }

    /// Parks the session: what runs is ended, what was written is kept, the turn stays open.
    pub(super) async fn close(mut self) -> End {
        self.asking = None;
        self.note(Command::Wake);
        self.work.keep(is_undo);
        loop {
            tokio::select! {
                biased;
                kept = oldest(&mut self.pending), if !self.pending.is_empty() => match kept {
                    Ok(_) => self.tell(),
                    Err(error) => return self.broken(error).await,
                },
                Some(command) = self.work.done() => {
                    if self.counts(&command) {
                        self.note(command);
                    }
                }
                else => break,
            }
        }
        for Waiting { reply, .. } in self.waiting.drain(..) {
            let _ = reply.send(Delivery::Answered(Err(Error::Closing)));
        }
        let (shared, lease) = (Arc::clone(&self.shared), self.lease.clone());
        let open_turn = self.state.open.is_some();
        self.keep_snapshot().await;
        shared.give_back(lease, open_turn).await;
        End::Closing
    }

    /// Has a command's records kept, and begins nothing that follows from them.
    fn note(&mut self, command: Command) {
        if let Ok(records) = self.execute(command) {
            self.commit(records, None);
        }
    }

    /// A call that ended by itself at the last moment is over, and so is one of a turn that must end.
    /// One that we stopped is left open, and the next start tells the model that it was interrupted.
    fn counts(&self, command: &Command) -> bool {
        let stopping = self.state.open.as_ref().is_some_and(|open| open.stopping.is_some());
        match command {
            Command::Finished { outcome, .. } => stopping || outcome.ending != Ending::Cancelled,
            command => matches!(command, Command::PutBack { .. }),
        }
    }
}

/// An undo that has begun is finished: it works on a thread that cannot be stopped, and nobody may
/// begin another one beside it.
fn is_undo(effect: &Effect) -> bool {
    matches!(effect, Effect::Revert(_))
}
