//! Splits text and queries into words as the index does.
//!
//! The index splits text at spaces and punctuation. Scripts without spaces are split here,
//! character by character, and searched by pairs of characters.

use std::collections::HashSet;

/// Maximum number of words of a query.
const WORDS_LIMIT: usize = 48;

/// Maximum length of a word, in characters.
const WORD_LENGTH_LIMIT: usize = 64;

/// A text with spaces around the characters of scripts without spaces.
pub(crate) fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0' => out.push(' '),
            c if is_unspaced(c) => out.extend([' ', c, ' ']),
            c => out.push(c),
        }
    }
    out
}

/// The words of a query, each once.
pub(crate) fn query_words(query: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let words = query.split(|c: char| !is_word_character(c)).flat_map(run_words);
    let counts = |word: &String| word.chars().any(char::is_alphanumeric);
    words.filter(counts).filter(|word| seen.insert(word.clone())).take(WORDS_LIMIT).collect()
}

/// A word as a phrase of the index's query language. Inside quotes no character is special.
pub(crate) fn phrase(word: &str) -> String {
    format!("\"{}\"", spaced(word).replace('"', " "))
}

/// True if a character can be inside a word. Beyond ASCII the index decides.
fn is_word_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || !(c.is_ascii() || c.is_whitespace() || c.is_control())
}

/// The words of a run without spaces.
fn run_words(run: &str) -> Vec<String> {
    let mut run_words = Vec::new();
    let chars: Vec<char> = run.chars().collect();
    for piece in chars.chunk_by(|a, b| is_unspaced(*a) == is_unspaced(*b)) {
        match piece {
            [first, _, ..] if is_unspaced(*first) => {
                run_words.extend(piece.windows(2).map(|pair| pair.iter().collect()));
            }
            [_, ..] => {
                let lower = piece.iter().take(WORD_LENGTH_LIMIT).flat_map(|c| c.to_lowercase());
                run_words.push(lower.collect());
            }
            [] => {}
        }
    }
    run_words
}

/// True for characters of scripts without spaces, and for Hangul, whose words have endings.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF          // Thai, Lao
        | 0x1000..=0x109F        // Myanmar
        | 0x1780..=0x17FF        // Khmer
        | 0x3040..=0x30FF        // Hiragana, Katakana
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF        // Han
        | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF        // Hangul
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, words: &[&str]) {
        assert_eq!(query_words(query), words, "{query:?}");
    }

    #[test]
    fn only_the_words_of_a_query_count() {
        check("Deploy the API, deploy!", &["deploy", "the", "api"]);
        check(
            "foo_bar \"x\" AND (NEAR/2) col:y*",
            &["foo", "bar", "x", "and", "near", "2", "col", "y"],
        );
        check("nai\u{308}ve Größe", &["nai\u{308}ve", "größe"]);
        check("  🎉 \u{0} -- ''", &[]);
    }

    #[test]
    fn scripts_without_spaces_are_searched_by_pairs() {
        check("昨日会議 v2", &["昨日", "日会", "会議", "v2"]);
        check("木", &["木"]);
        assert_eq!(phrase("昨日"), "\" 昨  日 \"");
        assert_eq!(spaced("a木b\0"), "a 木 b ");
    }
}
