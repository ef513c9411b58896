//! How long to leave storage alone after it failed.

use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Delays that double up to half a minute.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// No delay is longer than this.
    pub(crate) const MAX_DELAY: Duration = Duration::from_secs(30);

    pub(crate) fn new() -> Self {
        Self { next: FIRST_DELAY }
    }

    /// How long to wait this time.
    pub(crate) fn delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = Self::MAX_DELAY.min(delay * 2);
        delay
    }

    /// Waits that long.
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.delay()).await;
    }
}
