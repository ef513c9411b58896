//! Leaves a provider alone for a while that fails again and again, so that nobody waits for it in vain
//! and it is not kept down by those who ask.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::model::{Failure, FailureKind};
use tokio::time::Instant;

use crate::retry::{Retry, Trouble};

/// So many failures in a row are too many.
const TOO_MANY: u32 = 8;
/// How long it is left alone. Then one call may try.
const PAUSE: Duration = Duration::from_secs(15);

/// How a provider has been lately.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Until when nobody asks.
    until: Option<Instant>,
}

impl Breaker {
    /// Whether the provider may be asked now. Once the pause is over, whoever comes first finds out,
    /// and the others wait for another pause, unless it ends well.
    pub(crate) fn admit(&self, name: &str) -> Result<(), Trouble> {
        let mut state = self.state();
        let now = Instant::now();
        match state.until {
            Some(until) if now < until => {
                let left = until - now;
                let (failures, seconds) = (state.failures, left.as_secs() + 1);
                let message = format!(
                    "{name} failed {failures} times in a row and is left alone for {seconds} s"
                );
                let failure = Failure { kind: FailureKind::Unavailable, message };
                Err(Trouble { failure, retry: Retry::After(left) })
            }
            Some(_) => {
                state.until = Some(now + PAUSE);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Records an answer of the provider.
    pub(crate) fn succeeded(&self) {
        *self.state() = State::default();
    }

    /// Records that the provider could not be reached, or is broken.
    pub(crate) fn failed(&self) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= TOO_MANY {
            state.until = Some(Instant::now() + PAUSE);
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
    async fn after_a_pause_one_may_try() {
        let breaker = Breaker::default();
        for _ in 0..TOO_MANY {
            assert!(breaker.admit("p").is_ok());
            breaker.failed();
        }
        let trouble = breaker.admit("p").unwrap_err();
        assert_eq!(trouble.retry, Retry::After(PAUSE));
        assert!(trouble.failure.message.starts_with("p failed 8 times"), "{trouble:?}");
        tokio::time::advance(PAUSE).await;
        assert!(breaker.admit("p").is_ok());
        assert!(breaker.admit("p").is_err(), "only one tries");
        breaker.failed();
        tokio::time::advance(PAUSE).await;
        assert!(breaker.admit("p").is_ok());
        breaker.succeeded();
        assert!(breaker.admit("p").is_ok() && breaker.admit("p").is_ok());
    }
}
