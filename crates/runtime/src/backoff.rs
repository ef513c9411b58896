//! Delays between attempts to reach storage that failed.

use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Delays that double from half a second up to half a minute.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// The longest delay.
    pub(crate) const MAX_DELAY: Duration = Duration::from_secs(30);

    pub(crate) fn new() -> Self {
        Self { next: FIRST_DELAY }
    }

    /// The next delay.
    pub(crate) fn delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = Self::MAX_DELAY.min(delay * 2);
        delay
    }

    /// Waits for the next delay.
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.delay()).await;
    }
}
