//! What the daemon added to the time of recent turns, summed up.

use std::time::Duration;

use quintet_kernel::port::TurnOverhead;

#[cfg(test)]
mod tests;

/// A measured part of a turn: the name that clients see, and its time.
type Part = (&'static str, fn(&TurnOverhead) -> Option<Duration>);

const PARTS: [Part; 4] = [
    ("asked", |turn| Some(turn.asked)),
    ("first_text", |turn| turn.first_output),
    ("tool_round_trip", |turn| turn.tool_round_trip),
    ("total", |turn| Some(turn.total)),
];

/// The middle and the upper end of some times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantiles {
    pub(crate) median: Duration,
    pub(crate) p95: Duration,
}

/// The quantiles of each part of some turns; a part that no turn had is left out.
pub(crate) fn quantiles(turns: &[TurnOverhead]) -> Vec<(&'static str, Quantiles)> {
    let found = |(name, of): &Part| {
        let mut times: Vec<Duration> = turns.iter().filter_map(of).collect();
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100);
            times.get(rank.checked_sub(1)?).copied()
        };
        Some((*name, Quantiles { median: at(50)?, p95: at(95)? }))
    };
    PARTS.iter().filter_map(found).collect()
}

/// The daemon's share of the time of some turns, from 0 to 1, without the time in which clients were waited for;
/// `None` without any time.
pub(crate) fn share(turns: &[TurnOverhead]) -> Option<f64> {
    let added: Duration = turns.iter().map(|turn| turn.total).sum();
    let elsewhere: Duration = turns.iter().map(|turn| turn.models_and_tools).sum();
    let all = added + elsewhere;
    (!all.is_zero()).then(|| added.as_secs_f64() / all.as_secs_f64())
}
