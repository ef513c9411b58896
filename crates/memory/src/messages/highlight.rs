//! Finds the words of a query in a text as the index does: by their stems, ignoring accents.
//!
//! The text is inserted into a table in memory that tokenizes like the index; SQLite marks the
//! matches, and the marks are converted to positions in the text.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension as _};

use crate::words::is_unspaced;

/// Marks around matches. They are removed from the text first.
const BEGIN: char = '\u{1}';
const END: char = '\u{2}';

/// Finds the words of one query.
pub(super) struct Highlighter {
    db: Connection,
    /// The words in SQLite's query syntax.
    words: String,
    /// The symbols to search for if there are no words.
    marks: Vec<String>,
}

impl Highlighter {
    pub(super) fn new(phrases: &[String], query: &str) -> rusqlite::Result<Self> {
        let db = Connection::open_in_memory()?;
        db.execute_batch(
            "CREATE VIRTUAL TABLE words USING fts5 (
                body, tokenize = 'porter unicode61 remove_diacritics 2'
            )",
        )?;
        let marks = query.split_whitespace().map(Into::into).collect();
        Ok(Self { db, words: phrases.join(" OR "), marks })
    }

    /// The byte ranges of the words, in order.
    pub(super) fn matches(&self, text: &str) -> rusqlite::Result<Vec<Range<usize>>> {
        if self.words.is_empty() {
            return Ok(self.marks_in(text));
        }
        let SpacedText { spaced, offsets } = SpacedText::new(text);
        self.db.execute("DELETE FROM words", [])?;
        self.db.execute("INSERT INTO words (body) VALUES (?1)", [spaced])?;
        let mut marked = self.db.prepare_cached(
            "SELECT highlight(words, 0, char(1), char(2)) FROM words WHERE words MATCH ?1",
        )?;
        let marked = marked.query_row([&self.words], |row| row.get::<_, String>(0)).optional()?;
        Ok(ranges(&marked.unwrap_or_default(), &offsets))
    }

    fn marks_in(&self, text: &str) -> Vec<Range<usize>> {
        let offsets = self.marks.iter().flat_map(|mark| text.match_indices(mark.as_str()));
        let mut offsets: Vec<_> = offsets.map(|(at, mark)| at..at + mark.len()).collect();
        offsets.sort_by_key(|offset| (offset.start, offset.end));
        // Matches may overlap; the first one is used.
        let mut end = 0;
        offsets.retain(|offset| {
            let apart = offset.start >= end;
            end = end.max(offset.end);
            apart
        });
        offsets
    }
}

/// A text as the index tokenizes it, and the source position of each byte.
struct SpacedText {
    spaced: String,
    offsets: Vec<usize>,
}

impl SpacedText {
    fn new(text: &str) -> Self {
        let mut this = Self { spaced: String::with_capacity(text.len()), offsets: Vec::new() };
        for (at, c) in text.char_indices() {
            match c {
                '\0' | BEGIN | END => this.push(' ', at),
                c if is_unspaced(c) => {
                    this.push(' ', at);
                    this.push(c, at);
                    this.push(' ', at + c.len_utf8());
                }
                c => this.push(c, at),
            }
        }
        this.offsets.push(text.len());
        this
    }

    fn push(&mut self, c: char, offset: usize) {
        self.spaced.push(c);
        self.offsets.extend(std::iter::repeat_n(offset, c.len_utf8()));
    }
}

/// The ranges between marks.
fn ranges(marked: &str, offsets: &[usize]) -> Vec<Range<usize>> {
    let (mut at, mut begin, mut ranges) = (0, 0, Vec::new());
    let offset = |at: usize| offsets.get(at).or(offsets.last()).copied().unwrap_or_default();
    for c in marked.chars() {
        match c {
            BEGIN => begin = offset(at),
            END => ranges.push(begin..offset(at)),
            c => at += c.len_utf8(),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    #[track_caller]
    fn check(query: &str, text: &str, expected: &[&str]) {
        let phrases: Vec<_> =
            words::query_words(query).iter().map(|word| words::phrase(word)).collect();
        let highlighter = Highlighter::new(&phrases, query).unwrap();
        let found = highlighter.matches(text).unwrap();
        let found: Vec<_> = found.into_iter().map(|offset| &text[offset]).collect();
        assert_eq!(found, expected, "{query:?} in {text:?}");
        // Searching a second text does not depend on the first.
        assert_eq!(highlighter.matches("nothing").unwrap(), [] as [Range<usize>; 0]);
    }

    #[test]
    fn words_are_found_by_their_stems() {
        check("deploy", "We deployed it; DEPLOYS are deployable.", &["deployed", "DEPLOYS"]);
        check("cafe", "Das Café, \u{1}ein Cafe\u{301}\u{2}", &["Café", "Cafe\u{301}"]);
        check("a\"b AND *", "a AND b", &["a", "AND", "b"]);
    }

    #[test]
    fn scripts_without_blanks_and_marks_are_found() {
        check("東京", "昨日の会議は東京で🎉", &["東京"]);
        check("会議は", "昨日の会議は東京で", &["会議は"]);
        check("🎉 !!", "fertig 🎉🎉 !!", &["🎉", "🎉", "!!"]);
    }
}
