//! Numbers of tokens, exact or estimated.

use std::iter::Sum;
use std::ops::Add;

/// A number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCount {
    /// The number.
    pub tokens: u64,
    /// True if the model's own tokenizer counted; false for an estimate.
    pub exact: bool,
}

impl TokenCount {
    /// Average bytes per token, for estimates.
    pub(crate) const BYTES: u64 = 4;

    /// Zero tokens, exactly.
    pub const NONE: Self = Self { tokens: 0, exact: true };

    /// An estimate for a text.
    pub fn guess(text: &str) -> Self {
        match text.len() as u64 {
            0 => Self::NONE,
            bytes => Self { tokens: bytes.div_ceil(Self::BYTES), exact: false },
        }
    }
}

impl Add for TokenCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), exact: self.exact && other.exact }
    }
}

impl Sum for TokenCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::NONE, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_as_exact_as_its_parts() {
        let exact = TokenCount { tokens: 2, exact: true };
        assert_eq!(TokenCount::guess("12345"), TokenCount { tokens: 2, exact: false });
        assert_eq!([exact, TokenCount::guess("")].into_iter().sum::<TokenCount>(), exact);
        assert!(!(exact + TokenCount::guess("a")).exact);
    }
}
