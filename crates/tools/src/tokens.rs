//! How many tokens a text is, estimated: four bytes are one.

/// The tokens of a text.
pub(crate) fn count(text: &str) -> usize {
    text.len().div_ceil(BYTES)
}

/// The bytes that so many tokens have room for.
pub(crate) fn bytes(tokens: usize) -> usize {
    tokens.saturating_mul(BYTES)
}

const BYTES: usize = 4;
