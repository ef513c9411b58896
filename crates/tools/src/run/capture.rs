//! The captured output of a stream: everything up to a limit as a file, and both ends for the model.

use std::borrow::Cow;
use std::collections::VecDeque;

use quintet_kernel::port::OutputFile;

use crate::utf8;

/// The most bytes of a stream that are stored.
pub(super) const STORED_LIMIT: usize = 16 * 1024 * 1024;
/// How much of a stream the model reads.
const SHOWN_LIMIT: usize = 32 * 1024;
/// How much of that is its end.
const TAIL_LIMIT: usize = SHOWN_LIMIT / 2;

/// One stream of a command.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    kept: Vec<u8>,
    /// The last bytes that did not fit into `kept`.
    tail: VecDeque<u8>,
    total: usize,
}

impl Capture {
    /// Adds output; returns the part that is stored.
    pub(crate) fn push<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        self.total += bytes.len();
        let (fits, rest) = bytes.split_at(bytes.len().min(STORED_LIMIT - self.kept.len()));
        self.kept.extend_from_slice(fits);
        self.tail.extend(&rest[rest.len().saturating_sub(TAIL_LIMIT)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_LIMIT));
        fits
    }

    /// What the model reads.
    pub(crate) fn text(&self) -> String {
        if self.total <= SHOWN_LIMIT {
            return String::from_utf8_lossy(&self.kept).into_owned();
        }
        let head = &self.kept[..SHOWN_LIMIT - TAIL_LIMIT];
        let head = &head[..utf8::whole(head)];
        let tail = self.last();
        let tail = &tail[utf8::first(&tail)..];
        let left_out = self.total - head.len() - tail.len();
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{head}\n[{left_out} bytes left out]\n{tail}")
    }

    /// The stored output as a file, if the model does not get all of it.
    pub(crate) fn file(&self, name: &str) -> Option<OutputFile> {
        (self.total > SHOWN_LIMIT).then(|| log(name, self.content().into_owned()))
    }

    /// True if the whole output was stored.
    pub(crate) fn is_whole(&self) -> bool {
        self.total == self.kept.len()
    }

    /// The stored output, with a note about what is missing.
    pub(crate) fn content(&self) -> Cow<'_, [u8]> {
        let lost = self.total - self.kept.len();
        if lost == 0 {
            return Cow::Borrowed(&self.kept);
        }
        let mut content = self.kept.clone();
        content.extend_from_slice(format!("\n[{lost} more bytes were not kept]\n").as_bytes());
        Cow::Owned(content)
    }

    fn last(&self) -> Vec<u8> {
        let from_kept = TAIL_LIMIT - self.tail.len();
        let mut last = self.kept[self.kept.len() - from_kept..].to_vec();
        last.extend(&self.tail);
        last
    }
}

/// A log as a file.
pub(super) fn log(name: &str, content: Vec<u8>) -> OutputFile {
    OutputFile { name: name.to_owned(), mime: "text/plain".to_owned(), content }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(pieces: &[&[u8]]) -> Capture {
        let mut capture = Capture::default();
        for piece in pieces {
            capture.push(piece);
        }
        capture
    }

    #[test]
    fn what_fits_is_not_touched() {
        let capture = captured(&[b"a", &[b'b'; SHOWN_LIMIT - 1]]);
        assert_eq!(capture.text().len(), SHOWN_LIMIT);
        assert!(capture.file("x").is_none());
    }

    #[test]
    fn a_cut_says_how_much_and_keeps_both_ends() {
        let capture = captured(&["é".repeat(SHOWN_LIMIT).as_bytes(), b"end"]);
        let text = capture.text();
        assert!(text.starts_with("éé") && text.ends_with("éend"), "{text}");
        assert!(!text.contains('\u{fffd}'));
        let shown = text.split('\n').filter(|line| !line.starts_with('[')).map(str::len);
        let left_out = 2 * SHOWN_LIMIT + 3 - shown.sum::<usize>();
        assert!(text.contains(&format!("\n[{left_out} bytes left out]\n")), "{left_out}");
        assert_eq!(capture.file("x").expect("it was cut").content.len(), 2 * SHOWN_LIMIT + 3);
    }

    #[test]
    fn the_end_is_shown_even_when_it_is_not_kept() {
        let capture =
            captured(&[&vec![b'a'; STORED_LIMIT - 1], b"bc", &vec![b'd'; TAIL_LIMIT], b"end"]);
        assert!(capture.text().ends_with("dend"));
        let file = capture.file("x").expect("it was cut").content;
        let note = format!("ab\n[{} more bytes were not kept]\n", TAIL_LIMIT + 4);
        assert!(file.ends_with(note.as_bytes()));
    }

    #[test]
    fn the_end_may_lie_in_both_places() {
        let capture = captured(&[&vec![b'a'; STORED_LIMIT], b"end"]);
        assert!(capture.text().ends_with("aaend"));
        assert_eq!(capture.last().len(), TAIL_LIMIT);
    }
}
