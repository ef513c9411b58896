//! The system's clock and random numbers.

use std::time::{SystemTime, UNIX_EPOCH};

use quintet_kernel::port::Clock;
use quintet_kernel::{Stamp, Time};

/// The system's clock and random numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn stamp(&self) -> Stamp {
        let mut bytes = [[0; 8]; 2];
        getrandom::fill(bytes.as_flattened_mut()).expect("the system has a source of randomness");
        Stamp::new(self.now(), bytes.map(u64::from_ne_bytes))
    }

    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}
