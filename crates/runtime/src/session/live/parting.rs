//! How a live session ends before it is idle: storage failed, or the daemon shuts down.

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, StorageError};
use quintet_kernel::session::Effect;
use quintet_kernel::tool::Ending;

use super::{End, Live, Waiting};
use crate::session::Delivery;
use crate::session::pending::{Answer, oldest};

impl Live {
    /// Ends the session after storage failed: waiting clients get the error, and running work is
    /// stopped, because its results could not be stored.
    pub(super) async fn broken(mut self, error: StorageError) -> End {
        for pending in self.pending.drain(..) {
            pending.answers.into_iter().for_each(|answer| answer.fail(&error));
        }
        for Waiting { receipt, reply, .. } in self.waiting.drain(..) {
            Answer::Receipt(reply, receipt).fail(&error);
        }
        self.asking = None;
        self.work.keep(is_undo);
        while self.work.done().await.is_some() {}
        End::Broken(error)
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
        self.keep_snapshot().await;
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
