//! The tokenizer of BERT models: words and pieces of words, without accents and in lower case.

use std::collections::HashMap;

use serde::Deserialize;
use unicode_categories::UnicodeCategories as _;
use unicode_normalization::UnicodeNormalization as _;

/// Maximum number of characters that are tokenized; no model reads more.
const TEXT_LIMIT: usize = 65_536;
/// A longer word counts as unknown.
const WORD_LIMIT: usize = 100;

/// The vocabulary and the special tokens.
#[derive(Debug)]
pub(super) struct WordPiece {
    vocabulary: HashMap<String, i32>,
    start: i32,
    end: i32,
    unknown: i32,
}

#[derive(Deserialize)]
struct File {
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    vocab: HashMap<String, i32>,
}

impl WordPiece {
    /// Reads a `tokenizer.json`. Fails with the reason if it is not of a BERT model.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, String> {
        let file: File = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let vocabulary = file.model.vocab;
        let special = |token: &str| {
            vocabulary.get(token).copied().ok_or_else(|| format!("there is no token {token}"))
        };
        let (start, end, unknown) = (special("[CLS]")?, special("[SEP]")?, special("[UNK]")?);
        Ok(Self { vocabulary, start, end, unknown })
    }

    /// The tokens of a text with a start and an end token; tokens beyond the limit are dropped.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<i32> {
        let mut ids = vec![self.start];
        let normalized = normalized(text);
        for word in words(&normalized) {
            if ids.len() + 1 >= limit {
                break;
            }
            self.encode_word(word, &mut ids);
        }
        ids.truncate(limit - 1);
        ids.push(self.end);
        ids
    }

    /// Splits a word into the longest known beginning, then the longest known continuation, and so
    /// on.
    fn encode_word(&self, word: &str, ids: &mut Vec<i32>) {
        let before = ids.len();
        let mut rest = word;
        while !rest.is_empty() {
            let piece = |end: &usize| {
                if rest.len() == word.len() {
                    self.vocabulary.get(&rest[..*end])
                } else {
                    self.vocabulary.get(&format!("##{}", &rest[..*end]))
                }
            };
            let ends = rest.char_indices().map(|(start, letter)| start + letter.len_utf8()).rev();
            let found = ends.map(|end| (end, piece(&end))).find(|(_, id)| id.is_some());
            let short = word.chars().nth(WORD_LIMIT).is_none();
            let Some((end, Some(id))) = found.filter(|_| short) else {
                ids.truncate(before);
                ids.push(self.unknown);
                return;
            };
            ids.push(*id);
            rest = &rest[end..];
        }
    }
}

/// The text without control characters and accents, in lower case, with spaces around ideographs.
fn normalized(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for letter in text.chars().take(TEXT_LIMIT).filter(|letter| !is_dropped(*letter)) {
        if letter.is_whitespace() {
            spaced.push(' ');
        } else if is_ideograph(letter) {
            spaced.extend([' ', letter, ' ']);
        } else {
            spaced.push(letter);
        }
    }
    let plain = spaced.nfd().filter(|letter| !letter.is_mark_nonspacing());
    plain.flat_map(char::to_lowercase).collect()
}

/// Words, with every punctuation mark as its own word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_mark = |letter: char| letter.is_ascii_punctuation() || letter.is_punctuation();
    text.split(char::is_whitespace).flat_map(move |word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = if is_mark(first) {
                first.len_utf8()
            } else {
                rest.find(is_mark).unwrap_or(rest.len())
            };
            let (word, later) = rest.split_at(end);
            rest = later;
            Some(word)
        })
    })
}

fn is_dropped(letter: char) -> bool {
    match letter {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{fffd}' => true,
        letter => letter.is_other(),
    }
}

/// The ideographs of Chinese, which the vocabulary has one by one.
fn is_ideograph(letter: char) -> bool {
    matches!(
        letter,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2b73f}'
            | '\u{2b740}'..='\u{2b81f}'
            | '\u{2b920}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}'
    )
}

#[cfg(test)]
mod tests;
