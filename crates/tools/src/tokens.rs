//! How many tokens a text is, estimated: four bytes are one.

/// The bytes that so many tokens have room for.
pub(crate) fn bytes(tokens: usize) -> usize {
    tokens.saturating_mul(BYTES)
}

const BYTES: usize = 4;
