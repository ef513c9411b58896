//! What models were sent.

use super::{BoxFuture, Error};
use crate::event::Seq;
use crate::id::SessionId;
use crate::session::State;

/// Inbound: prompts of the past, assembled again from the journal.
pub trait PromptHistory: Send + Sync {
    /// The session as it was right after an event. Where that is the beginning of a model call,
    /// [`crate::prompt::assemble`] makes of it the prompt that the model was sent. Fails if there is
    /// no such session; nothing is given if there is no such event.
    fn session_at<'a>(
        &'a self,
        session: &'a SessionId,
        event: Seq,
    ) -> BoxFuture<'a, Result<Option<State>, Error>>;
}
