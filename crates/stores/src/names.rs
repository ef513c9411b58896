//! Finds the blobs that an event refers to.
//!
//! Whatever looks like a blob's name counts, wherever it stands. So no kind of event can be forgotten
//! here: a reference too many keeps something for too long, one too few would lose it.

use memchr::memchr_iter;

/// How many digits a blob's name has.
pub(crate) const DIGITS: usize = 64;

/// The names of blobs in an encoded event, each as often as it is there.
pub(crate) fn names_in(body: &[u8]) -> impl Iterator<Item = &str> {
    memchr_iter(b'"', body).filter_map(|quote| {
        let name = body.get(quote + 1..=quote + DIGITS)?;
        let ends = body.get(quote + DIGITS + 1) == Some(&b'"');
        let whole = ends && name.iter().all(|&digit| is_digit(digit));
        whole.then(|| std::str::from_utf8(name).ok()).flatten()
    })
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}
