//! Limits the requests of a connection per second.

use std::collections::VecDeque;
use std::time::Duration;

use quintet_kernel::Time;

const SECOND: Duration = Duration::from_secs(1);

/// Counts the requests of the last second.
#[derive(Debug)]
pub(super) struct RateLimiter {
    limit: usize,
    taken: VecDeque<Time>,
}

impl RateLimiter {
    /// A limiter that lets this many requests through within any second.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, taken: VecDeque::new() }
    }

    /// Counts a request. Fails with the time to wait if there were too many; refused requests do not count.
    pub(super) fn take(&mut self, now: Time) -> Result<(), Duration> {
        while self.taken.front().is_some_and(|first| now.since(*first) >= SECOND) {
            self.taken.pop_front();
        }
        match self.taken.front() {
            Some(first) if self.taken.len() >= self.limit => Err(SECOND - now.since(*first)),
            _ => {
                self.taken.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_room_for_so_many() {
        let mut rate = RateLimiter::new(2);
        let at = |ms: i64| Time::from_micros(ms * 1000);
        assert_eq!(rate.take(at(0)), Ok(()));
        assert_eq!(rate.take(at(600)), Ok(()));
        assert_eq!(rate.take(at(700)), Err(Duration::from_millis(300)));
        assert_eq!(rate.take(at(1000)), Ok(()));
        assert_eq!(rate.take(at(1100)), Err(Duration::from_millis(500)));
        // A clock that goes back does not let more through.
        assert_eq!(rate.take(at(500)), Err(SECOND));
        assert_eq!(rate.take(at(1600)), Ok(()));
    }
}
