//! The memory use of a session without work.

use std::sync::Arc;

use quintet_kernel::State;
use quintet_kernel::message::{Message, Part};
use tokio::sync::Notify;

use crate::runtime::Shared;

/// Bytes of a session's task, state and tail.
const SESSION_BASE_BYTES: usize = 16 * 1024;

/// Bytes of a message besides its text.
const MESSAGE_BASE_BYTES: usize = 512;

/// Registers the session as idle, with its memory use.
pub(super) struct IdleMemory {
    shared: Arc<Shared>,
    /// Notified when the session should leave memory.
    pub(super) leave: Arc<Notify>,
    ticket: Option<u64>,
    bytes: usize,
    /// Number of messages that are counted in `bytes`.
    messages: usize,
}

impl IdleMemory {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let (shared, leave) = (Arc::clone(shared), Arc::new(Notify::new()));
        Self { shared, leave, ticket: None, bytes: SESSION_BASE_BYTES, messages: 0 }
    }

    /// The session has no work.
    pub(super) fn begin(&mut self, state: &State) {
        if self.ticket.is_none() {
            let new = state.messages.iter().skip(self.messages);
            self.bytes += new.map(|message| message_bytes(message)).sum::<usize>();
            self.messages = state.messages.len();
            self.ticket = Some(self.shared.idle.add(self.bytes, &self.leave));
        }
    }

    /// The session is in use.
    pub(super) fn end(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.shared.idle.remove(ticket);
        }
    }
}

impl Drop for IdleMemory {
    fn drop(&mut self) {
        self.end();
    }
}

/// An estimate of a message's memory use, in bytes.
fn message_bytes(message: &Message) -> usize {
    let part = |part: &Part| match part {
        // Once in the state and once in the last prompt.
        Part::Text(text) | Part::Context(text) | Part::Thought(text) => 2 * text.len(),
        Part::Media { .. } | Part::Call { .. } => MESSAGE_BASE_BYTES,
    };
    MESSAGE_BASE_BYTES + message.parts.iter().map(part).sum::<usize>()
}
