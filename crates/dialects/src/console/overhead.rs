//! What the daemon added to the time of recent turns.

use std::time::Duration;

use quintet_kernel::port::TurnOverhead;
use serde_json::{Map, Value, json};

use crate::overhead;

/// Recent turns, oldest first, and their quantiles.
pub(super) fn shape(turns: &[TurnOverhead]) -> Value {
    let parts: Map<String, Value> = overhead::quantiles(turns)
        .into_iter()
        .map(|(part, of)| {
            (part.into(), json!({ "median_ms": ms(of.median), "p95_ms": ms(of.p95) }))
        })
        .collect();
    json!({
        "turns": turns.iter().map(turn).collect::<Vec<_>>(),
        "parts": parts, "share": overhead::share(turns),
    })
}

fn turn(turn: &TurnOverhead) -> Value {
    json!({
        "at": turn.ended.micros(), "asked_ms": ms(turn.asked),
        "first_text_ms": turn.first_output.map(ms), "tool_round_trip_ms": turn.tool_round_trip.map(ms),
        "total_ms": ms(turn.total), "models_and_tools_ms": ms(turn.models_and_tools),
    })
}

/// Milliseconds, to the microsecond.
fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
