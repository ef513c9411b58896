//! The line of a message with most matches, shortened around them.

use std::ops::Range;

/// Maximum length of an excerpt, in characters.
const EXCERPT_LIMIT: usize = 240;

/// Characters shown before the first match.
const CONTEXT_LIMIT: usize = 60;

/// The line with most matches, and their positions in it; the first line that is not blank if there
/// are none.
pub(super) fn excerpt(text: &str, matches: &[Range<usize>]) -> (String, Vec<Range<usize>>) {
    let line = best_line(text, matches);
    let of_line = matches.iter().filter(|found| line.start <= found.start && found.end <= line.end);
    let of_line: Vec<_> = of_line.cloned().collect();
    let cut = cut(text, &line, of_line.first().map_or(line.start, |found| found.start));
    let ellipsis = |cut: bool| if cut { "…" } else { "" };
    let (before, after) = (ellipsis(cut.start > line.start), ellipsis(cut.end < line.end));
    let plain = |c: char| if c.is_ascii_control() { ' ' } else { c };
    let body: String = text[cut.clone()].chars().map(plain).collect();
    let shift = |found: Range<usize>| {
        (found.start - cut.start + before.len())..(found.end - cut.start + before.len())
    };
    let inside = |found: &Range<usize>| cut.start <= found.start && found.end <= cut.end;
    let matches = of_line.into_iter().filter(inside).map(shift).collect();
    (format!("{before}{body}{after}"), matches)
}

fn best_line(text: &str, matches: &[Range<usize>]) -> Range<usize> {
    let mut best = (0, 0..text.len());
    let mut at = 0;
    for line in text.split('\n') {
        let range = at..at + line.len();
        at = range.end + 1;
        let inside = |found: &&Range<usize>| range.start <= found.start && found.end <= range.end;
        let count =
            2 * matches.iter().filter(inside).count() + usize::from(!line.trim().is_empty());
        if count > best.0 {
            best = (count, range);
        }
    }
    trimmed(text, best.1)
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let line = &text[range.clone()];
    let start = range.start + (line.len() - line.trim_start().len());
    start..start + line.trim().len()
}

/// As much of a line as fits, around a position in it.
fn cut(text: &str, line: &Range<usize>, position: usize) -> Range<usize> {
    let characters = text[line.clone()].char_indices().map(|(at, _)| line.start + at);
    let starts: Vec<usize> = characters.chain([line.end]).collect();
    let count = starts.len() - 1;
    if count <= EXCERPT_LIMIT {
        return line.clone();
    }
    let found = starts.partition_point(|start| *start < position);
    let first = found.saturating_sub(CONTEXT_LIMIT).min(count - EXCERPT_LIMIT);
    starts[first]..starts[first + EXCERPT_LIMIT]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, words: &[&str], expected: &str) {
        let mut matches: Vec<_> = words
            .iter()
            .flat_map(|word| text.match_indices(word).map(|(at, word)| at..at + word.len()))
            .collect();
        matches.sort_by_key(|found| found.start);
        let (shown, found) = excerpt(text, &matches);
        let mut marked = shown;
        for range in found.into_iter().rev() {
            marked.insert(range.end, ']');
            marked.insert(range.start, '[');
        }
        assert_eq!(marked, expected);
    }

    #[test]
    fn the_line_with_most_matches_is_shown() {
        check("one\n  two one \tthree\r\none", &["one", "two"], "[two] [one]  three");
        check("\n\n first \nsecond", &[], "first");
        check("", &[], "");
    }

    #[test]
    fn a_long_line_is_shortened_around_the_first_match() {
        let text = format!("{}needle{}", "é".repeat(300), "x".repeat(300));
        let expected = format!("…{}[needle]{}…", "é".repeat(60), "x".repeat(174));
        check(&text, &["needle"], &expected);
        check(&"y".repeat(300), &[], &format!("{}…", "y".repeat(240)));
    }
}
