//! Converts a sentence to phonemes.

use quintet_kernel::port::SenseError;

use super::lexicon::{Following, Lexicon, Word};
use super::spelled_out::spelled_out;
use super::tagger::Tagger;
use super::unknown_words::UnknownWords;

/// Punctuation that the voice knows.
const PUNCTUATION: &str = ";:,.!?—…\"()“”";
/// Endings that are tagged as their own words.
const CLITICS: &[&str] = &["n't", "'s", "'ll", "'re", "'ve", "'d", "'m"];

/// Converts sentences to phonemes.
pub(super) struct Phonemizer {
    lexicon: Lexicon,
    tagger: Tagger,
    unknown: UnknownWords,
}

/// A word or a mark of punctuation.
#[derive(Debug, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    is_word: bool,
    /// True if a space follows.
    space: bool,
}

impl Phonemizer {
    pub(super) fn new(lexicon: Lexicon, tagger: Tagger, unknown: UnknownWords) -> Self {
        Self { lexicon, tagger, unknown }
    }

    /// The phonemes of a sentence; empty if nothing in it can be pronounced.
    pub(super) fn phonemes(&self, sentence: &str) -> Result<String, SenseError> {
        let text = spelled_out(sentence);
        let tokens = tokens(&text);
        let tags = self.tags(&tokens);
        let mut sounds = vec![String::new(); tokens.len()];
        let mut following = Following::default();
        // The pronunciation of a word may depend on the next one.
        for (at, token) in tokens.iter().enumerate().rev() {
            sounds[at] = if token.is_word {
                self.word(Word { text: token.text, tag: tags[at] }, following)?
            } else {
                token.text.to_owned()
            };
            following = following.before(&sounds[at], token.text);
        }
        let mut phonemes = String::new();
        for (token, sound) in tokens.iter().zip(sounds) {
            phonemes.push_str(&sound);
            if token.space && !phonemes.is_empty() && !phonemes.ends_with(' ') {
                phonemes.push(' ');
            }
        }
        Ok(phonemes.trim().replace('ɾ', "T").replace('ʔ', "t"))
    }

    fn word(&self, word: Word<'_>, following: Following) -> Result<String, SenseError> {
        if let Some(phonemes) = self.lexicon.phonemes(word, following) {
            return Ok(phonemes);
        }
        let pieces = pieces(word.text);
        if let [whole] = pieces[..] {
            return self.unknown.phonemes(whole);
        }
        let read = |text: &str| match self.lexicon.phonemes(Word { text, ..word }, following) {
            Some(phonemes) => Ok(phonemes),
            None => self.unknown.phonemes(text),
        };
        let pieces = pieces.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(pieces.join(" "))
    }

    /// The tag of each token; a word with a clitic has the tag of its longer part.
    fn tags(&self, tokens: &[Token<'_>]) -> Vec<&str> {
        let split: Vec<(&str, &str)> =
            tokens.iter().map(|token| split_clitic(token.text)).collect();
        let words: Vec<&str> = split.iter().flat_map(|(stem, clitic)| [*stem, *clitic]).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let mut tags = self.tagger.tags(&words).into_iter();
        let weight = |text: &str| -> usize {
            text.chars().map(|letter| if letter.is_uppercase() { 2 } else { 1 }).sum()
        };
        let tag = |(stem, clitic): &(&str, &str)| {
            let stem_tag = tags.next().unwrap_or("NN");
            if clitic.is_empty() {
                stem_tag
            } else {
                let clitic_tag = tags.next().unwrap_or("NN");
                if weight(clitic) > weight(stem) { clitic_tag } else { stem_tag }
            }
        };
        split.iter().map(tag).collect()
    }
}

/// "doesn't" is "does" and "n't".
fn split_clitic(text: &str) -> (&str, &str) {
    let clitic =
        CLITICS.iter().find(|clitic| text.ends_with(**clitic) && text.len() > clitic.len());
    text.split_at(text.len() - clitic.map_or(0, |clitic| clitic.len()))
}

/// Splits a text into words and punctuation. Other characters separate words.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            first if first.is_alphabetic() => word_length(rest),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if first.is_alphabetic() {
            tokens.push(Token { text: token, is_word: true, space: false });
        } else if PUNCTUATION.contains(first) {
            tokens.push(Token { text: token, is_word: false, space: false });
        } else if let Some(last) = tokens.last_mut() {
            last.space = true;
        }
    }
    tokens
}

/// Letters with apostrophes between them, or an abbreviation with its full stops.
fn word_length(text: &str) -> usize {
    let mut end = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().is_some_and(|(_, next)| next.is_alphabetic());
        let is_part = letter.is_alphabetic() || (letter == '\'' && next);
        let is_stop = letter == '.' && next && is_abbreviation(&text[..at]);
        if !is_part && !is_stop {
            break;
        }
        end = at + letter.len_utf8();
    }
    let is_dotted = text[..end].contains('.') && text[end..].starts_with('.');
    if is_dotted { end + 1 } else { end }
}

/// True if all parts between full stops are short.
fn is_abbreviation(text: &str) -> bool {
    text.split('.').all(|part| (1..3).contains(&part.chars().count()))
}

/// The words of `camelCase`.
fn pieces(word: &str) -> Vec<&str> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    let mut last: Option<char> = None;
    for (at, letter) in word.char_indices() {
        if letter.is_uppercase() && last.is_some_and(char::is_lowercase) {
            pieces.push(&word[start..at]);
            start = at;
        }
        last = Some(letter);
    }
    pieces.push(&word[start..]);
    pieces
}

#[cfg(test)]
mod tests;
