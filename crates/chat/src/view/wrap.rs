//! Breaks lines between words, and words that are longer than a line.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::palette::{Row, Run, TextRole};

/// Breaks a line into rows of at most `width`; all but the first are indented.
pub(super) fn wrap(line: &[Run], width: usize, indent: usize) -> Vec<Row> {
    let width = width.max(1);
    let indent = if indent * 2 < width { indent } else { 0 };
    let mut rows = Vec::new();
    let mut row: Vec<(TextRole, &str)> = Vec::new();
    let (mut used, mut room) = (0, width);
    for (role, letter) in graphemes(line) {
        let wide = letter.width();
        if used + wide > room && !row.is_empty() {
            let rest = row.split_off(end_of_word(&row));
            rows.push(joined(&row, rows.len(), indent));
            row = rest;
            (used, room) = (row.iter().map(|(_, letter)| letter.width()).sum(), width - indent);
        }
        // Spaces at a line break are dropped.
        if row.is_empty() && letter == " " && !rows.is_empty() {
            continue;
        }
        row.push((role, letter));
        used += wide;
    }
    rows.push(joined(&row, rows.len(), indent));
    rows
}

/// Shortens a line to the width.
pub(super) fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |letter: &&str| {
        used += letter.width();
        used <= width
    };
    text.graphemes(true).take_while(fits).collect()
}

fn graphemes(line: &[Run]) -> impl Iterator<Item = (TextRole, &str)> {
    line.iter().flat_map(|(role, text)| text.graphemes(true).map(|letter| (*role, letter)))
}

/// The position at which a row is broken: after its last space, unless the word would fill the row.
fn end_of_word(row: &[(TextRole, &str)]) -> usize {
    let space = row.iter().rposition(|(_, letter)| *letter == " ");
    let blank = |upto: usize| row[..upto].iter().all(|(_, letter)| *letter == " ");
    space.map(|space| space + 1).filter(|end| !blank(*end)).unwrap_or(row.len())
}

fn joined(row: &[(TextRole, &str)], nth: usize, indent: usize) -> Row {
    let mut runs: Row = Vec::new();
    if nth > 0 && indent > 0 {
        runs.push((TextRole::Plain, " ".repeat(indent)));
    }
    for (role, letter) in row {
        match runs.last_mut() {
            Some((last, text)) if last == role => text.push_str(letter),
            _ => runs.push((*role, (*letter).to_owned())),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, width: usize, indent: usize, expect: &[&str]) {
        let rows = wrap(&[(TextRole::Plain, text.to_owned())], width, indent);
        let rows: Vec<String> =
            rows.iter().map(|row| row.iter().map(|(_, text)| text.as_str()).collect()).collect();
        assert_eq!(rows, expect);
    }

    #[test]
    fn lines_break_between_words() {
        check("one two three", 8, 0, &["one two ", "three"]);
        check("one two three", 80, 0, &["one two three"]);
        check("- one two", 6, 2, &["- one ", "  two"]);
        check("", 6, 2, &[""]);
    }

    #[test]
    fn long_words_break_anywhere_at_every_width() {
        check("abcdef", 4, 0, &["abcd", "ef"]);
        check("日本語", 4, 0, &["日本", "語"]);
        check("日本", 1, 0, &["日", "本"]);
        check("ab", 0, 4, &["a", "b"]);
        check("one        two", 4, 0, &["one ", "two"]);
    }
}
