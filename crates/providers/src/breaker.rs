//! A circuit breaker: calls to a provider that fails repeatedly are refused for a while, so that
//! turns do not wait in vain and the provider can recover.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::model::{Failure, FailureKind};
use tokio::time::Instant;

use crate::retry::{AttemptError, Retry};

/// Failures in a row that open the breaker.
const FAILURES_LIMIT: u32 = 8;
/// Time for which calls are refused. Then one call is admitted as a probe.
const OPEN_INTERVAL: Duration = Duration::from_secs(15);

/// The circuit breaker of one provider.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// The time until which calls are refused.
    open_until: Option<Instant>,
}

impl Breaker {
    /// Admits a call. Fails while the breaker is open; after its interval one call is admitted, and
    /// the others are refused for another interval unless that call succeeds.
    pub(crate) fn admit(&self, name: &str) -> Result<(), AttemptError> {
        let mut state = self.state();
        let now = Instant::now();
        match state.open_until {
            Some(open_until) if now < open_until => {
                let left = open_until - now;
                let (failures, seconds) = (state.failures, left.as_secs() + 1);
                let message = format!(
                    "{name} failed {failures} times in a row and is left alone for {seconds} s"
                );
                let failure = Failure { kind: FailureKind::Unavailable, message };
                Err(AttemptError { failure, retry: Retry::After(left) })
            }
            Some(_) => {
                state.open_until = Some(now + OPEN_INTERVAL);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Records an answer of the provider.
    pub(crate) fn succeeded(&self) {
        *self.state() = State::default();
    }

    /// Records that the provider could not be reached, or failed.
    pub(crate) fn failed(&self) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES_LIMIT {
            state.open_until = Some(Instant::now() + OPEN_INTERVAL);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_the_interval_one_call_is_admitted() {
        let breaker = Breaker::default();
        for _ in 0..FAILURES_LIMIT {
            assert!(breaker.admit("p").is_ok());
            breaker.failed();
        }
        let error = breaker.admit("p").unwrap_err();
        assert_eq!(error.retry, Retry::After(OPEN_INTERVAL));
        assert!(error.failure.message.starts_with("p failed 8 times"), "{error:?}");
        tokio::time::advance(OPEN_INTERVAL).await;
        assert!(breaker.admit("p").is_ok());
        assert!(breaker.admit("p").is_err(), "only one call is admitted");
        breaker.failed();
        tokio::time::advance(OPEN_INTERVAL).await;
        assert!(breaker.admit("p").is_ok());
        breaker.succeeded();
        assert!(breaker.admit("p").is_ok() && breaker.admit("p").is_ok());
    }
}
