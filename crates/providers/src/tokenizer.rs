//! Published tokenizers, which count exactly.

use quintet_kernel::model::TokenCount;
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

/// The longest run without a word break that is tokenized. A longer one is not natural language and
/// is estimated, because tokenizing it is slow.
const STRETCH_BYTES_LIMIT: usize = 4_096;

/// A tokenizer that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokenizer {
    /// The encoding of OpenAI's models since GPT-4o.
    O200k,
    /// The encoding of GPT-4 and models of its time.
    Cl100k,
}

impl Tokenizer {
    /// The tokenizer of that name in the catalogue.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "o200k" => Some(Self::O200k),
            "cl100k" => Some(Self::Cl100k),
            _ => None,
        }
    }

    /// Counts the tokens of a text. The first call reads the table, which takes a moment.
    pub(crate) fn count(self, text: &str) -> TokenCount {
        if has_long_stretch(text) {
            return TokenCount::guess(text);
        }
        TokenCount { tokens: self.table().encode_ordinary(text).len() as u64, exact: true }
    }

    fn table(self) -> &'static CoreBPE {
        match self {
            Self::O200k => o200k_base_singleton(),
            Self::Cl100k => cl100k_base_singleton(),
        }
    }
}

/// True if a text has a very long word or gap.
fn has_long_stretch(text: &str) -> bool {
    let (mut blank, mut length) = (false, 0);
    text.chars().any(|letter| {
        length = if letter.is_whitespace() == blank { length + letter.len_utf8() } else { 0 };
        blank = letter.is_whitespace();
        length > STRETCH_BYTES_LIMIT
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_counted_as_published() {
        let count = |tokenizer: Tokenizer, text: &str| tokenizer.count(text);
        let exact = |tokens| TokenCount { tokens, exact: true };
        assert_eq!(count(Tokenizer::O200k, "hello world"), exact(2));
        assert_eq!(count(Tokenizer::Cl100k, "antidisestablishmentarianism"), exact(6));
        assert_eq!(count(Tokenizer::Cl100k, "2 + 2 = 4"), exact(7));
        assert_eq!(count(Tokenizer::Cl100k, "お誕生日おめでとう"), exact(9));
        assert_eq!(count(Tokenizer::O200k, ""), exact(0));
        // Special tokens in a text are counted as text.
        assert!(count(Tokenizer::O200k, "<|endoftext|>").tokens > 1);
    }

    #[test]
    fn unnatural_text_is_estimated() {
        for odd in ["a", " ", "\n"] {
            assert!(!Tokenizer::O200k.count(&odd.repeat(1 << 20)).exact);
        }
    }
}
