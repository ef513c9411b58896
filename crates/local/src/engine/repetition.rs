//! Detects a model that repeats itself.

use llama_cpp_2::token::LlamaToken;

/// The longest repeated passage that is detected.
const PASSAGE_TOKENS_LIMIT: usize = 48;
/// Number of repeated tokens after which an answer is cut off.
const REPEATED_TOKENS_LIMIT: usize = 160;

/// True if the end of an answer repeats one passage.
pub(super) fn is_repetition(tokens: &[LlamaToken]) -> bool {
    let Some(end) = tokens.len().checked_sub(REPEATED_TOKENS_LIMIT).map(|start| &tokens[start..])
    else {
        return false;
    };
    (1..=PASSAGE_TOKENS_LIMIT)
        .any(|length| end.iter().zip(&end[length..]).all(|(one, next)| one == next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_repetitions_are_detected() {
        let tokens = |n: usize, period: usize| -> Vec<LlamaToken> {
            (0..n).map(|n| LlamaToken((n % period) as i32)).collect()
        };
        assert!(is_repetition(&tokens(200, 1)) && is_repetition(&tokens(200, 48)));
        assert!(!is_repetition(&tokens(100, 1)), "a short line of dashes is no repetition");
        assert!(!is_repetition(&tokens(400, 49)));
        assert!(!is_repetition(&tokens(400, 400)));
    }
}
