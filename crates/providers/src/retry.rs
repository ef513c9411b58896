//! Decides when a call to a provider is retried.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use quintet_kernel::model::{Failure, FailureKind};

use crate::config::Retries;

/// The longest wait that a provider may request.
const REQUESTED_WAIT_LIMIT: Duration = Duration::from_secs(60);

/// A failed attempt, and whether a retry may help.
#[derive(Debug)]
pub(crate) struct AttemptError {
    pub(crate) failure: Failure,
    pub(crate) retry: Retry,
}

impl AttemptError {
    /// Adds what the user can do about a refused key or an unknown model of this provider.
    pub(crate) fn with_remedy(mut self, provider: &str) -> Self {
        let remedy = match self.failure.kind {
            FailureKind::Unauthorized => format!(
                "check the key of `{provider}`: `quintet config` shows where it comes from, \
                 `quintet keys set {provider}` replaces it"
            ),
            FailureKind::UnknownModel => "`quintet models` lists the models".into(),
            FailureKind::RateLimited
            | FailureKind::Unavailable
            | FailureKind::ContextOverflow
            | FailureKind::Rejected
            | FailureKind::Cut
            | FailureKind::Stalled
            | FailureKind::Malformed
            | FailureKind::UnsupportedInput
            | FailureKind::Refused => return self,
        };
        self.failure.message = format!("{} ({remedy})", self.failure.message);
        self
    }
}

/// Whether a retry may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// A retry would fail again.
    Never,
    /// Yes, after a backoff.
    Later,
    /// Yes, after the time that the provider names.
    After(Duration),
}

impl Retry {
    /// The wait before the next try, after `tries` of them; `None` if there is no further try.
    pub(crate) fn wait(self, tries: u32, retries: &Retries) -> Option<Duration> {
        if tries > retries.max_retries {
            return None;
        }
        match self {
            Self::Never => None,
            Self::Later => Some(backoff(tries, retries)),
            Self::After(asked) => Some(asked.min(REQUESTED_WAIT_LIMIT)),
        }
    }
}

/// Doubles with every attempt; the upper half is random, so that callers spread out.
fn backoff(tries: u32, retries: &Retries) -> Duration {
    let doubled = 1_u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX);
    let most = retries.first_wait.saturating_mul(doubled).min(retries.longest_wait);
    most.mul_f64(0.5 + 0.5 * random_fraction())
}

/// A random number from 0 to 1, from the keys of a fresh [`RandomState`].
fn random_fraction() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// Reads `Retry-After`: seconds, or a date, which is compared with the provider's own `Date`
/// rather than with a clock that may differ from it.
pub(crate) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let wait = http_date(value)?.checked_sub(http_date(date?)?)?;
    Some(Duration::from_secs(u64::try_from(wait).unwrap_or_default()))
}

/// Seconds of a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let month = i64::try_from(MONTHS.find(words.next()?)? / 3 + 1).ok()?;
    let year: i64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(|n| n.parse::<u8>().ok());
    let mut unit = || clock.next()?.map(i64::from);
    let (hour, minute, second) = (unit()?, unit()?, unit()?);
    let in_range = (1970..=9999).contains(&year) && (1..=31).contains(&day);
    in_range.then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days of a date since 1970. A year is taken to begin in March, so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let since_march = (month + 9) % 12;
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (since_march * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let date = Some("Sun, 28 Feb 2100 23:59:50 GMT");
        let check = |value, seconds: Option<u64>| {
            assert_eq!(retry_after(value, date), seconds.map(Duration::from_secs), "{value}");
        };
        check("7", Some(7));
        check("Mon, 01 Mar 2100 00:00:05 GMT", Some(15));
        check("Sun, 28 Feb 2100 23:00:00 GMT", Some(0));
        check("soon", None);
        check("-1", None);
        check("1e400", None);
        check("Sun, 99999999999999999999 Feb 2100 23:00:00 GMT", None);
        check("Sun, 01 Feb 9999 9223372036854775807:00:00 GMT", None);
    }

    #[test]
    fn http_dates_count_from_1970() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
    }

    #[test]
    fn waits_grow_up_to_a_limit_and_end() {
        let retries = Retries {
            max_retries: 9,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(5),
        };
        for (tries, most) in [(1, 1), (2, 2), (3, 4), (4, 5), (9, 5)] {
            let wait = Retry::Later.wait(tries, &retries).unwrap();
            let most = Duration::from_secs(most);
            assert!(most / 2 <= wait && wait <= most, "{tries}: {wait:?}");
        }
        assert_eq!(Retry::Later.wait(10, &retries), None);
        assert_eq!(Retry::Never.wait(1, &retries), None);
        let long = Retry::After(Duration::from_secs(3600));
        assert_eq!(long.wait(1, &retries), Some(REQUESTED_WAIT_LIMIT));
    }
}
