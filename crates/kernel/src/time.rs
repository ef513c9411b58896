//! Points in time, in microseconds since 1970. The kernel never reads the clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time (UTC, microseconds).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(i64);

impl Time {
    /// From microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Parses RFC 3339.
    pub fn parse(text: &str) -> Option<Self> {
        let timestamp: jiff::Timestamp = text.parse().ok()?;
        Some(Self::from_micros(timestamp.as_microsecond()))
    }

    /// Microseconds since the epoch.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// The time this long after.
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The time this long before.
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The UTC date, as `2025-01-01`.
    pub fn day(self) -> String {
        self.timestamp().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
    }

    /// RFC 3339 in UTC with exactly three fractional digits, as some clients require.
    pub fn to_rfc3339_millis(self) -> String {
        format!("{:.3}", self.timestamp())
    }

    /// The duration since `earlier`; zero if the clock went back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// `20250101t000000z`, as used in ids.
    pub(crate) fn compact(self) -> String {
        let when = self.timestamp().to_zoned(jiff::tz::TimeZone::UTC);
        format!(
            "{:04}{:02}{:02}t{:02}{:02}{:02}z",
            when.year(),
            when.month(),
            when.day(),
            when.hour(),
            when.minute(),
            when.second()
        )
    }

    fn timestamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::MAX)
    }
}

/// RFC 3339 in UTC, with as many digits of the second as are needed.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}
