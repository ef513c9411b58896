//! Stops that arrive before the query they stop: they are remembered for a moment.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::Time;

/// How long a stop is remembered that found no turn.
pub(crate) const EARLY_STOP_LIFETIME: Duration = Duration::from_secs(5);
/// The most stops that are remembered.
const STOPS_LIMIT: usize = 1000;

/// Stops that arrived before their queries.
#[derive(Debug, Default)]
pub(crate) struct EarlyStops(Mutex<Vec<Stop>>);

/// A stop that found no turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) user: String,
    /// The conversation, if it names one.
    pub(crate) conversation: Option<String>,
    /// The turn, if it names one.
    pub(crate) turn: Option<String>,
    pub(crate) at: Time,
}

impl EarlyStops {
    pub(crate) fn remember(&self, stop: Stop) {
        let mut stops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stop.at;
        stops.retain(|stop| now.since(stop.at) < EARLY_STOP_LIFETIME);
        if stops.len() < STOPS_LIMIT {
            stops.push(stop);
        }
    }

    /// Removes the stop of a query that arrives now; true if there was one.
    pub(crate) fn take(&self, user: &str, conversation: &str, turn: &str, now: Time) -> bool {
        let mut stops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits =
            |named: &Option<String>, name: &str| named.as_deref().is_none_or(|it| it == name);
        let applies = |stop: &Stop| {
            let young = now.since(stop.at) < EARLY_STOP_LIFETIME;
            let named = fits(&stop.turn, turn) && fits(&stop.conversation, conversation);
            young && stop.user == user && named
        };
        let found = stops.iter().position(applies);
        found.map(|nth| stops.remove(nth)).is_some()
    }
}

#[cfg(test)]
mod tests;
