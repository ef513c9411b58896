//! Notices a model that writes the same over and over.

use llama_cpp_2::token::LlamaToken;

/// The longest passage that is looked for, in tokens.
const PASSAGE_TOKENS_LIMIT: usize = 48;
/// So many tokens are the same passage again and again before an answer is cut off.
const ENOUGH: usize = 160;

/// True if the end of an answer is one passage, over and over.
pub(super) fn loops(tokens: &[LlamaToken]) -> bool {
    let Some(end) = tokens.len().checked_sub(ENOUGH).map(|start| &tokens[start..]) else {
        return false;
    };
    (1..=PASSAGE_TOKENS_LIMIT)
        .any(|length| end.iter().zip(&end[length..]).all(|(one, next)| one == next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_repeats_is_a_loop() {
        let tokens = |n: usize, period: usize| -> Vec<LlamaToken> {
            (0..n).map(|n| LlamaToken((n % period) as i32)).collect()
        };
        assert!(loops(&tokens(200, 1)) && loops(&tokens(200, 48)));
        assert!(!loops(&tokens(100, 1)), "a short line of dashes is no loop");
        assert!(!loops(&tokens(400, 49)));
        assert!(!loops(&tokens(400, 400)));
    }
}
