//! Limits the requests of a connection per second.

use std::collections::VecDeque;
use std::time::Duration;

use quintet_kernel::Time;

const SECOND: Duration = Duration::from_secs(1);

/// Counts the requests of the last second.
#[derive(Debug)]
pub(super) struct RateLimiter {
    limit: usize,
    counted: VecDeque<Time>,
}

impl RateLimiter {
    /// A limiter that allows this many requests within any second.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, counted: VecDeque::new() }
    }

    /// Counts a request. Fails with the time to wait if there were too many; refused requests are not
    /// counted.
    pub(super) fn check(&mut self, now: Time) -> Result<(), Duration> {
        while self.counted.front().is_some_and(|first| now.since(*first) >= SECOND) {
            self.counted.pop_front();
        }
        match self.counted.front() {
            Some(first) if self.counted.len() >= self.limit => Err(SECOND - now.since(*first)),
            _ => {
                self.counted.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_per_second_are_limited() {
        let mut rate = RateLimiter::new(2);
        let at = |ms: i64| Time::from_micros(ms * 1000);
        assert_eq!(rate.check(at(0)), Ok(()));
        assert_eq!(rate.check(at(600)), Ok(()));
        assert_eq!(rate.check(at(700)), Err(Duration::from_millis(300)));
        assert_eq!(rate.check(at(1000)), Ok(()));
        assert_eq!(rate.check(at(1100)), Err(Duration::from_millis(500)));
        // A clock that goes back does not allow more requests.
        assert_eq!(rate.check(at(500)), Err(SECOND));
        assert_eq!(rate.check(at(1600)), Ok(()));
    }
}
