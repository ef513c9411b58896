//! A clock that tests control, and deterministic ids.

use std::sync::atomic::{AtomicU64, Ordering};

use quintet_kernel::port::Clock;
use quintet_kernel::{Stamp, Time};
use tokio::time::Instant;

/// The start time of every test: 2025-01-01 00:00:00 UTC.
pub const START_TIME: Time = Time::from_micros(1_735_689_600_000_000);

/// A clock that follows tokio's, so that it stops while tokio's clock is paused.
///
/// Share one between a runtime and its successor, so that ids are unique.
#[derive(Debug)]
pub struct FakeClock {
    began: Instant,
    given: AtomicU64,
}

impl FakeClock {
    /// A clock that starts at a fixed time.
    pub fn new() -> Self {
        Self { began: Instant::now(), given: AtomicU64::new(0) }
    }
}

impl Default for FakeClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for FakeClock {
    fn stamp(&self) -> Stamp {
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        Stamp::new(self.now(), [number, 0])
    }

    fn now(&self) -> Time {
        START_TIME.after(self.began.elapsed())
    }
}
