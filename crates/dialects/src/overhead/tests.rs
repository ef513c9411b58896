//! Sums of what the daemon added.

use std::time::Duration;

use quintet_kernel::Time;
use quintet_kernel::port::TurnOverhead;

use super::{Quantiles, quantiles, share};

/// A turn in which the daemon took this many milliseconds, and models and tools nine times as many.
fn turn(ms: u64) -> TurnOverhead {
    TurnOverhead {
        ended: Time::from_micros(0),
        asked: Duration::from_millis(ms / 2),
        first_output: (ms > 90).then_some(Duration::from_millis(1)),
        tool_round_trip: None,
        total: Duration::from_millis(ms),
        models_and_tools: Duration::from_millis(9 * ms),
    }
}

fn both(median: u64, p95: u64) -> Quantiles {
    Quantiles { median: Duration::from_millis(median), p95: Duration::from_millis(p95) }
}

#[test]
fn quantiles_are_those_of_the_turns_that_have_the_part() {
    let turns: Vec<_> = (0..=100).rev().map(turn).collect();
    let expected = [("asked", both(25, 47)), ("first_text", both(1, 1)), ("total", both(50, 95))];
    assert_eq!(quantiles(&turns), expected);
    assert_eq!(quantiles(&turns[100..]), [("asked", both(0, 0)), ("total", both(0, 0))]);
    let few = quantiles(&[turn(60), turn(20)]);
    assert_eq!(few, [("asked", both(10, 30)), ("total", both(20, 60))]);
    assert_eq!(quantiles(&[]), []);
}

#[test]
fn the_share_is_that_of_all_time() {
    let turns: Vec<_> = (0..=100).map(turn).collect();
    assert!((share(&turns).expect("they took time") - 0.1).abs() < 1e-9);
    assert_eq!(share(&turns[..1]), None);
}
