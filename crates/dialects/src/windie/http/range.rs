//! Range and conditional requests: which bytes a client wants, and whether it already has them.

use std::ops::Range;

/// What to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    All,
    /// Some bytes.
    Part(Range<u64>),
    /// Nothing, because the range is beyond the end.
    Nothing,
}

/// Parses `Range`. A header with several ranges, or another unit, is ignored, as HTTP allows.
pub(super) fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some((first, last)) = header.and_then(single) else { return Wanted::All };
    let range = match (first.parse::<u64>().ok(), last.parse::<u64>().ok()) {
        (Some(first), None) if last.is_empty() => first..size,
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        (None, Some(length)) if first.is_empty() => size.saturating_sub(length)..size,
        _ => return Wanted::All,
    };
    if range.is_empty() { Wanted::Nothing } else { Wanted::Part(range) }
}

fn single(header: &str) -> Option<(&str, &str)> {
    let (unit, ranges) = header.split_once('=')?;
    let (first, last) = ranges.trim().split_once('-')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = unit.trim().eq_ignore_ascii_case("bytes") && digits(first) && digits(last);
    plain.then_some((first, last))
}

/// True if a list of tags, as in `If-None-Match`, contains this one.
pub(super) fn names(header: Option<&str>, tag: &str) -> bool {
    let same = |given: &str| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag;
    header.is_some_and(|tags| tags.split(',').map(str::trim).any(same))
}

#[cfg(test)]
mod tests;
