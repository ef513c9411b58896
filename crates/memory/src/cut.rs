//! Cuts a text to its share of the budget, at the ends of lines.

/// Room for the note of what was cut.
const NOTE: usize = 48;

/// Which part of a text counts most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// How it begins.
    Beginning,
    /// How it ends.
    End,
    /// Both.
    Ends,
}

/// As many of a text's lines as there is room for, in bytes, and a note of how many more there are.
pub(crate) fn cut(text: &str, room: usize, keep: Keep) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(NOTE) else { return String::new() };
    let (head, tail) = match keep {
        Keep::Beginning => (room, 0),
        Keep::End => (0, room),
        Keep::Ends => (room / 2, room - room / 2),
    };
    let (head, tail) = (beginning(text, head), end(text, tail));
    let lines = text[head..tail].lines().count();
    format!("{}[{lines} more lines: memory_get shows them]\n{}", &text[..head], &text[tail..])
}

/// Where the last line ends that has room.
fn beginning(text: &str, room: usize) -> usize {
    text.as_bytes()[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Where the first line begins that has room up to the end.
fn end(text: &str, room: usize) -> usize {
    let from = text.len() - room;
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
    fn what_counts_most_is_kept() {
        let text: String = (10..30).map(|n| format!("line {n}\n")).collect();
        let note = "[17 more lines: memory_get shows them]\n";
        let room = NOTE + 24;
        let cases = [
            (Keep::Beginning, format!("line 10\nline 11\nline 12\n{note}")),
            (Keep::End, format!("{note}line 27\nline 28\nline 29\n")),
            (Keep::Ends, format!("line 10\n{}line 29\n", note.replace("17", "18"))),
        ];
        for (keep, expected) in cases {
            assert_eq!(cut(&text, room, keep), expected);
            assert_eq!(cut(&text, text.len(), keep), text);
            assert_eq!(cut(&text, 10, keep), "");
        }
        let wide = "é".repeat(500);
        assert_eq!(cut(&wide, 100, Keep::Ends), "[1 more lines: memory_get shows them]\n");
    }
}
