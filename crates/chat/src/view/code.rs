//! Colours code, line by line.
//!
//! A small scanner and a table of languages instead of full grammars: it takes linear time, works
//! on incomplete programs, which streams usually show, and covers shells and configuration files,
//! which are common in terminals.

use super::grammars::{Grammar, grammar};
use super::palette::{Row, TextRole};

/// Lines of code.
pub(super) fn paint(language: &str, text: &str) -> Vec<Row> {
    let language = language.to_lowercase();
    if matches!(language.as_str(), "diff" | "patch") {
        return text.lines().map(diff_line).collect();
    }
    match grammar(&language) {
        None => text.lines().map(|line| vec![(TextRole::Plain, tidy(line))]).collect(),
        Some(grammar) => {
            let mut scanner = Scanner { grammar, within: None };
            text.lines().map(|line| scanner.line(&tidy(line))).collect()
        }
    }
}

/// A line of a diff.
pub(super) fn diff_line(line: &str) -> Row {
    let role = match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => TextRole::Strong,
        [b'+', ..] => TextRole::Added,
        [b'-', ..] => TextRole::Removed,
        [b'@', b'@', ..] => TextRole::Hunk,
        _ => TextRole::Plain,
    };
    vec![(role, tidy(line))]
}

/// Replaces tabs by spaces.
pub(super) fn tidy(line: &str) -> String {
    line.replace('\t', "    ")
}

struct Scanner {
    grammar: &'static Grammar,
    /// The delimiter that ends the open multi-line comment or string, and its role.
    within: Option<(&'static str, TextRole)>,
}

impl Scanner {
    fn line(&mut self, line: &str) -> Row {
        let mut row = Row::new();
        let mut at = 0;
        while at < line.len() {
            let (role, length) = self.next(&line[at..], line[..at].chars().next_back());
            let text = &line[at..at + length];
            match row.last_mut() {
                Some((last, run)) if *last == role => run.push_str(text),
                _ => row.push((role, text.to_owned())),
            }
            at += length;
        }
        row
    }

    /// The role and length of the next token; the length is never 0, so that scanning terminates.
    fn next(&mut self, rest: &str, before: Option<char>) -> (TextRole, usize) {
        if let Some((end, role)) = self.within {
            let found = rest.find(end).map(|at| at + end.len());
            if found.is_some() {
                self.within = None;
            }
            return (role, found.unwrap_or(rest.len()));
        }
        for (begin, end, role) in self.grammar.spans {
            if rest.starts_with(begin) {
                self.within = Some((end, *role));
                return (*role, begin.len());
            }
        }
        if self.grammar.comments.iter().any(|mark| rest.starts_with(mark)) {
            return (TextRole::Comment, rest.len());
        }
        let first = rest.chars().next().unwrap_or_default();
        match first {
            _ if self.grammar.quotes.contains(first) => self.quoted(rest, first),
            '\'' if self.grammar.letters => char_literal(rest),
            '$' if self.grammar.dollars => (TextRole::Name, 1 + word(&rest[1..])),
            '0'..='9' if !before.is_some_and(is_word_char) => (TextRole::Number, number(rest)),
            _ if is_word_char(first) => self.word(rest),
            _ => (TextRole::Plain, first.len_utf8().max(1)),
        }
    }

    fn quoted(&self, rest: &str, quote: char) -> (TextRole, usize) {
        let mut escaped = false;
        let mut length = rest.len();
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == quote => {
                    length = at + c.len_utf8();
                    break;
                }
                _ => {}
            }
        }
        let role = if self.is_key(&rest[length..]) { TextRole::Name } else { TextRole::Text };
        (role, length)
    }

    fn word(&self, rest: &str) -> (TextRole, usize) {
        let length = word(rest);
        let (text, after) = rest.split_at(length);
        let role = match text {
            _ if self.grammar.keywords.split(' ').any(|known| known == text) => TextRole::Keyword,
            _ if self.is_key(after) => TextRole::Name,
            _ if text.starts_with(char::is_uppercase) => TextRole::Type,
            _ if after.starts_with('(') || after.starts_with("!(") => TextRole::Name,
            _ => TextRole::Plain,
        };
        (role, length)
    }

    fn is_key(&self, after: &str) -> bool {
        self.grammar.sets.is_some_and(|mark| after.trim_start().starts_with(mark))
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(rest: &str) -> usize {
    rest.find(|c| !is_word_char(c)).unwrap_or(rest.len())
}

/// A dot belongs to a number if a digit follows it: `1..2` are two.
fn number(rest: &str) -> usize {
    let whole = word(rest);
    let tail = &rest[whole..];
    match tail.strip_prefix('.') {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
            whole + 1 + word(digits)
        }
        _ => whole,
    }
}

/// A character literal, or another use of a quote, such as a lifetime.
fn char_literal(rest: &str) -> (TextRole, usize) {
    let inner = &rest[1..];
    let skip = if inner.starts_with('\\') { 2 } else { 1 };
    let end = inner.char_indices().skip(skip).take(8).find(|(_, c)| *c == '\'');
    match end {
        Some((at, _)) if skip == 2 || inner[..at].chars().count() == 1 => (TextRole::Text, at + 2),
        _ => (TextRole::Plain, 1),
    }
}

#[cfg(test)]
mod tests;
