//! Applies hunks to a file, or reports for each why it does not apply.

use super::find::{FoundHunk, Haystack, Likeness};
use super::text::{FileLine, join, split, usual_end};
use super::{Anchor, Hunk, Line, Side};

/// How many lines of a hunk that does not apply are shown.
const SHOWN_LIMIT: usize = 20;

/// The result of a file's hunks.
#[derive(Debug)]
pub(super) struct Applied {
    /// The new content; not valid if a hunk does not apply.
    pub(super) bytes: Vec<u8>,
    /// For every hunk where it applies, or why it does not.
    pub(super) notes: Vec<Result<String, String>>,
}

/// Applies hunks in their order.
pub(super) fn apply(bytes: &[u8], hunks: &[Hunk]) -> Applied {
    let old = split(bytes);
    let mut work = Work {
        haystack: Haystack::new(&old),
        old: &old,
        new: Vec::new(),
        done: 0,
        offset: 0,
        usual: usual_end(&old),
    };
    let notes = hunks.iter().map(|hunk| work.apply(hunk)).collect();
    work.new.extend_from_slice(&old[work.done..]);
    Applied { bytes: join(&work.new, work.usual), notes }
}

struct Work<'a> {
    haystack: Haystack<'a>,
    old: &'a [FileLine],
    new: Vec<FileLine>,
    /// How much of the old file is in the new one already.
    done: usize,
    /// How far off the last hunk was from where it should have been.
    offset: isize,
    usual: &'static str,
}

impl Work<'_> {
    fn apply(&mut self, hunk: &Hunk) -> Result<String, String> {
        let (from, hint) = self.hint(hunk)?;
        let needle: Vec<_> = hunk.old().map(|line| line.text.as_bytes()).collect();
        let found = if needle.is_empty() {
            (hint <= self.old.len()).then_some(FoundHunk { at: hint, likeness: Likeness::Exact })
        } else {
            self.haystack.find(&needle, from, hint)
        };
        let found = found.ok_or_else(|| self.complaint(hunk, from, hint))?;
        self.new.extend_from_slice(&self.old[self.done..found.at]);
        self.put(hunk, found);
        self.done = found.at + needle.len();
        Ok(self.note(hunk, found))
    }

    /// From where on a hunk may be, and where it should be.
    fn hint(&self, hunk: &Hunk) -> Result<(usize, usize), String> {
        let length = hunk.old_len();
        match &hunk.place {
            Anchor::Line(line) => {
                let hint = line.saturating_add_signed(self.offset);
                Ok((self.done, hint.max(self.done)))
            }
            // A hunk that only adds lines, without a position, appends.
            Anchor::Next if length == 0 => Ok((self.done, self.old.len())),
            Anchor::Next => Ok((self.done, self.done)),
            Anchor::After(lines) => self.after(lines).map(|at| (at, at)),
            Anchor::End(lines) => {
                let from = self.after(lines)?;
                Ok((from, self.old.len().saturating_sub(length).max(from)))
            }
        }
    }

    /// The line after these, each of which is looked for after the one before it.
    fn after(&self, anchors: &[String]) -> Result<usize, String> {
        let mut haystack = Haystack::new(self.old);
        anchors.iter().try_fold(self.done, |from, anchor| {
            let found = haystack.find(&[anchor.as_bytes()], from, from);
            found.map(|found| found.at + 1).ok_or_else(|| {
                format!("does not apply: there is no line `{anchor}` after line {from}")
            })
        })
    }

    /// Adds the hunk's lines; context lines keep the text of the file.
    fn put(&mut self, hunk: &Hunk, found: FoundHunk) {
        let start = self.new.len();
        let careful = hunk.lines.iter().any(|line| line.text.ends_with('\r'));
        let careful = careful && found.likeness == Likeness::Exact;
        let mut at = found.at;
        for line in &hunk.lines {
            match line.side {
                Side::Both => self.new.push(self.old[at].clone()),
                Side::Old => (),
                Side::New => self.new.push(added(line, careful, self.usual)),
            }
            at += usize::from(line.side != Side::New);
        }
        // A file without an end of its last line stays so, unless the patch knew of it.
        let was_endless = at > found.at && self.old[at - 1].end.is_empty();
        let knew = hunk.lines.iter().any(|line| line.endless);
        if was_endless && !knew && self.new.len() > start {
            self.new.last_mut().into_iter().for_each(|last| last.end = "");
        }
    }

    fn note(&mut self, hunk: &Hunk, found: FoundHunk) -> String {
        let mut remarks = Vec::new();
        if let Anchor::Line(line) = hunk.place {
            let off = found.at.cast_signed() - line.cast_signed();
            if off != 0 {
                remarks.push(format!("offset {off}"));
            }
            self.offset = off;
        }
        match found.likeness {
            Likeness::Exact => (),
            Likeness::TrailingSpace => remarks.push("trailing white space ignored".to_owned()),
            Likeness::AnySpace => remarks.push("white space ignored".to_owned()),
        }
        let line = found.at + 1;
        if remarks.is_empty() {
            return format!("line {line}");
        }
        format!("line {line} ({})", remarks.join(", "))
    }

    fn complaint(&self, hunk: &Hunk, from: usize, hint: usize) -> String {
        let place = match hunk.place {
            Anchor::Line(line) => format!("near line {}", line + 1),
            Anchor::Next | Anchor::After(_) | Anchor::End(_) => format!("after line {from}"),
        };
        let mut text = format!("does not apply: these lines were expected {place}:\n");
        let length = hunk.old_len();
        text += &listed(hunk.old().map(|line| line.text.as_bytes()), length);
        if matches!(hunk.place, Anchor::Line(_)) {
            let there = self.old.iter().skip(hint).take(length.max(1));
            text += "    but there the file has:\n";
            text += &listed(there.clone().map(|line| &line.text[..]), there.count());
        }
        text.trim_end().to_owned()
    }
}

fn added(line: &Line, careful: bool, usual: &'static str) -> FileLine {
    let text = line.text.as_bytes();
    let (text, end) = match text.strip_suffix(b"\r") {
        Some(text) if careful => (text, "\r\n"),
        Some(text) => (text, usual),
        None if careful => (text, "\n"),
        None => (text, usual),
    };
    FileLine { text: text.to_vec(), end: if line.endless { "" } else { end } }
}

fn listed<'a>(lines: impl Iterator<Item = &'a [u8]>, count: usize) -> String {
    if count == 0 {
        return "    (nothing)\n".to_owned();
    }
    let mut text = String::new();
    for line in lines.take(SHOWN_LIMIT) {
        text += &format!("    | {}\n", crate::show::line(line, 200));
    }
    if count > SHOWN_LIMIT {
        text += &format!("    ({} more lines)\n", count - SHOWN_LIMIT);
    }
    text
}
