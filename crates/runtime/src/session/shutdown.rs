//! How a session ends with work in progress: storage failed, or the daemon shuts down.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, StorageError};
use quintet_kernel::session::Effect;
use quintet_kernel::tool::Ending;

use super::command_loop::{LiveEnd, LiveSession, TurnWaiter};
use crate::session::CommandReply;
use crate::session::pending_appends::{PendingReply, oldest_append};

/// The error for clients whose commands were stored or may have been.
const MOVED: &str = "the session moves to another node; whether this was done is not known";

impl LiveSession {
    /// Ends the session after storage failed: waiting clients get the error, and running work is
    /// stopped, because its results could not be stored.
    pub(super) async fn storage_failed(mut self, error: StorageError) -> LiveEnd {
        std::mem::take(&mut self.decided).fail(&error);
        for pending in self.pending.drain(..) {
            pending.answers.into_iter().for_each(|answer| answer.fail(&error));
        }
        let unfinished = match &error {
            // The command itself was stored, so it must not be sent to the new owner again.
            StorageError::Fenced => StorageError::Unavailable(MOVED.into()),
            error => error.clone(),
        };
        for TurnWaiter { receipt, reply, .. } in self.waiting.drain(..) {
            PendingReply::Receipt(reply, receipt).fail(&unfinished);
        }
        self.model_call = None;
        self.effects.retain(is_revert);
        while self.effects.done().await.is_some() {}
        match error {
            StorageError::Fenced if self.shared.deps.cluster.is_some() => LiveEnd::Fenced,
            error => LiveEnd::Broken(error),
        }
    }

    /// Ends the session after this node lost its leases: another node may own it by now. It is
    /// unknown whether pending appends were stored.
    pub(super) async fn fenced(self) -> LiveEnd {
        let (shared, lease) = (Arc::clone(&self.shared), self.lease.clone());
        self.storage_failed(StorageError::Unavailable(MOVED.into())).await;
        // Ignored, unless the lease was acquired after the others were lost.
        shared.release(&lease).await;
        LiveEnd::Fenced
    }

    /// Ends the session for a shutdown: running work is stopped, results are stored, the
    /// turn stays open.
    pub(super) async fn close(mut self) -> LiveEnd {
        self.model_call = None;
        self.record_only(Command::Wake);
        self.effects.retain(is_revert);
        loop {
            self.append_decided();
            tokio::select! {
                biased;
                kept = oldest_append(&mut self.pending), if !self.pending.is_empty() => match kept {
                    Ok(_) => self.publish(),
                    Err(error) => return self.storage_failed(error).await,
                },
                Some(command) = self.effects.done() => {
                    if self.is_final(&command) {
                        self.record_only(command);
                    }
                }
                else => break,
            }
        }
        for TurnWaiter { reply, .. } in self.waiting.drain(..) {
            let _ = reply.send(CommandReply::Answered(Err(Error::Closing)));
        }
        let (shared, lease) = (Arc::clone(&self.shared), self.lease.clone());
        let open_turn = self.state.open.is_some();
        self.keep_snapshot().await;
        shared.give_back(lease, open_turn).await;
        LiveEnd::Closing
    }

    /// Stores a command's records without starting what follows from them.
    fn record_only(&mut self, command: Command) {
        if let Ok(records) = self.execute(command) {
            self.commit(records, None);
        }
    }

    /// True for results that count at shutdown: a call that ended by itself, or any call of
    /// a turn that must end. A call that the shutdown stopped stays open, and the next
    /// start reports it as interrupted.
    fn is_final(&self, command: &Command) -> bool {
        let stopping = self.state.open.as_ref().is_some_and(|open| open.stopping.is_some());
        match command {
            Command::CallFinished { outcome, .. } => {
                stopping || outcome.ending != Ending::Cancelled
            }
            command => matches!(command, Command::RevertFinished { .. }),
        }
    }
}

/// A revert that has started is completed: it runs on a thread that cannot be stopped, and must
/// not run twice at once.
fn is_revert(effect: &Effect) -> bool {
    matches!(effect, Effect::RevertTurn(_))
}
