//! Comments and strings, over which a skim passes.

use crate::repository_map::languages::Lexis;

/// How long the comment or string is that a text begins with, if it does.
pub(super) fn length(lexis: &Lexis, text: &[u8]) -> Option<usize> {
    let begins = |start: &str| text.starts_with(start.as_bytes());
    if lexis.line_comments.iter().any(|start| begins(start)) {
        return Some(memchr::memchr(b'\n', text).unwrap_or(text.len()));
    }
    if let Some((start, end)) = lexis.block_comment.filter(|(start, _)| begins(start)) {
        return Some(past(text, start.len(), end));
    }
    if let Some(quote) = lexis.long_quotes.iter().find(|quote| begins(quote)) {
        return Some(past(text, quote.len(), quote));
    }
    let is_quoted = text.first().is_some_and(|first| lexis.quotes.contains(first));
    is_quoted.then(|| end_of_string(text))
}

/// The position after the next `end`.
fn past(text: &[u8], from: usize, end: &str) -> usize {
    let found = memchr::memmem::find(&text[from..], end.as_bytes());
    found.map_or(text.len(), |found| from + found + end.len())
}

/// The position after a string, which ends with the line at the latest.
fn end_of_string(text: &[u8]) -> usize {
    let quote = text[0];
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\n' => return at,
            b'\\' if text.get(at + 1) != Some(&b'\n') => at += 2,
            byte if *byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}
