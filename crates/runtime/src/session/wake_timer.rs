//! The times at which a session decides without input: text is to be stored, or a limit of the open turn is
//! reached. The session's own task waits for them, because a task for each would cost every turn a wake-up of
//! another thread.

use quintet_kernel::Time;
use quintet_kernel::command::Command;
use tokio::time::Instant;

use super::command_loop::LiveSession;
use crate::session::text_buffer::TextBuffer;

/// The time of [`Effect::WakeAt`](quintet_kernel::session::Effect::WakeAt), on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct WakeTimer {
    time: Time,
    at: Instant,
}

impl LiveSession {
    /// The timer for this time: the current one if it is for the same. `None` if the time is too far away to
    /// be waited for.
    pub(super) fn wake_timer_for(&self, time: Time) -> Option<WakeTimer> {
        let current = self.wake_timer.filter(|timer| timer.time == time);
        current.or_else(|| {
            let left = time.since(self.shared.deps.clock.now());
            Some(WakeTimer { time, at: Instant::now().checked_add(left)? })
        })
    }

    /// When [`Self::wake`] is due.
    pub(super) fn wake_due(&self) -> Option<Instant> {
        let flush_at = self.buffer.as_ref().and_then(TextBuffer::flush_at);
        flush_at.into_iter().chain(self.wake_timer.map(|timer| timer.at)).min()
    }

    /// Stores the buffered text and applies limits that were reached.
    pub(super) fn wake(&mut self) {
        // If the limit is still ahead on the session's clock, the rest of the time is waited for.
        self.wake_timer = None;
        self.handle_internal(Command::Wake);
    }
}
