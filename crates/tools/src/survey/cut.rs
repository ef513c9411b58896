//! Cuts a text to its share of the budget.

use crate::{show, tokens, utf8};

/// Room for the note of what was cut.
const NOTE_CHARACTERS: usize = 40;

/// The first lines of a text that fit, and a note of how many were left out.
pub(super) fn lines(text: &str, max_tokens: usize) -> String {
    let room = tokens::bytes(max_tokens);
    if text.len() <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(NOTE_CHARACTERS) else { return String::new() };
    let head = &text.as_bytes()[..room];
    match memchr::memrchr(b'\n', head) {
        Some(end) => {
            let left = text[end + 1..].lines().count();
            format!("{}[{} left out]\n", &text[..=end], show::count(left, "more line"))
        }
        // Not even one line fits.
        None => {
            let end = utf8::whole(head);
            format!("{}\n[{} left out]\n", &text[..end], show::count(text.len() - end, "more byte"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_falls_between_lines_and_says_how_many() {
        let text = "one two three\n".repeat(20);
        assert_eq!(lines(&text, 70), text);
        let cut = lines(&text, 69);
        assert_eq!(cut, "one two three\n".repeat(16) + "[4 more lines left out]\n");
        assert!(tokens::count(&cut) <= 69);
        assert_eq!(lines(&text, 9), "");
        assert_eq!(lines(&text, 14), "one two three\n[19 more lines left out]\n");
        assert_eq!(lines("", 0), "");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters() {
        let cut = lines(&"é".repeat(100), 11);
        assert_eq!(cut, "éé\n[196 more bytes left out]\n");
    }
}
