//! Shortens a text to its share of the budget, at line ends.

/// Bytes reserved for the note about omitted lines.
const NOTE_BYTES: usize = 48;

/// The part of a text to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The beginning.
    Beginning,
    /// The end.
    End,
    /// Both.
    Ends,
}

/// Keeps as many lines of a text as fit into `limit` bytes, with a note about the number of omitted
/// lines.
pub(crate) fn truncate(text: &str, limit: usize, keep: Keep) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let Some(limit) = limit.checked_sub(NOTE_BYTES) else { return String::new() };
    let (head, tail) = match keep {
        Keep::Beginning => (limit, 0),
        Keep::End => (0, limit),
        Keep::Ends => (limit / 2, limit - limit / 2),
    };
    let (head, tail) = (beginning(text, head), end(text, tail));
    let lines = text[head..tail].lines().count();
    format!("{}[{lines} more lines: memory_get shows them]\n{}", &text[..head], &text[tail..])
}

/// The end of the last line that fits.
fn beginning(text: &str, limit: usize) -> usize {
    text.as_bytes()[..limit].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// The start of the first line from which the rest fits.
fn end(text: &str, limit: usize) -> usize {
    let from = text.len() - limit;
    if from > 0 && text.as_bytes()[from - 1] == b'\n' {
        return from;
    }
    let later = text.as_bytes()[from..].iter().position(|byte| *byte == b'\n');
    later.map_or(text.len(), |at| from + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_part_is_kept() {
        let text: String = (10..30).map(|n| format!("line {n}\n")).collect();
        let note = "[17 more lines: memory_get shows them]\n";
        let limit = NOTE_BYTES + 24;
        let cases = [
            (Keep::Beginning, format!("line 10\nline 11\nline 12\n{note}")),
            (Keep::End, format!("{note}line 27\nline 28\nline 29\n")),
            (Keep::Ends, format!("line 10\n{}line 29\n", note.replace("17", "18"))),
        ];
        for (keep, expected) in cases {
            assert_eq!(truncate(&text, limit, keep), expected);
            assert_eq!(truncate(&text, text.len(), keep), text);
            assert_eq!(truncate(&text, 10, keep), "");
        }
        let wide = "é".repeat(500);
        assert_eq!(truncate(&wide, 100, Keep::Ends), "[1 more lines: memory_get shows them]\n");
    }
}
