//! The clock that all processes of a run share.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds of the machine's clock.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds between two readings; negative if the clock was set back between them.
pub(crate) fn ms(from: u64, to: u64) -> f64 {
    (to as f64 - from as f64) / 1e6
}

/// The median of samples.
pub(crate) fn median(samples: &[f64]) -> f64 {
    percentile(samples, 0.5)
}

/// The sample that this share of all samples does not exceed.
pub(crate) fn percentile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        len => sorted[((len - 1) as f64 * share).round() as usize],
    }
}
