//! What a search finds in a file, and in all of them.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use crate::blocking::CancelFlag;
use crate::show;

/// How much of a line is shown.
const MOST_BYTES: usize = 400;

/// The hits in one file.
pub(crate) struct FileMatches<'a> {
    path: &'a Path,
    /// How that is written, once there is something to show.
    name: OnceCell<String>,
    room: usize,
    flag: &'a CancelFlag,
    text: String,
    /// Lines before a match, which are shown only if the match is.
    before: String,
    /// Where each match that is shown begins, with the lines before it.
    starts: Vec<usize>,
    left_out: usize,
    binary: bool,
}

impl<'a> FileMatches<'a> {
    /// At most `room` matches are shown, the others counted.
    pub(crate) fn new(path: &'a Path, room: usize, flag: &'a CancelFlag) -> Self {
        Self {
            path,
            name: OnceCell::new(),
            room,
            flag,
            text: String::new(),
            before: String::new(),
            starts: Vec::new(),
            left_out: 0,
            binary: false,
        }
    }

    fn line(&self, mark: char, number: Option<u64>, bytes: &[u8]) -> String {
        let (name, number) =
            (self.name.get_or_init(|| show::path(self.path)), number.unwrap_or_default());
        format!("{name}{mark}{number}{mark}{}\n", show::line(bytes, MOST_BYTES))
    }
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> io::Result<bool> {
        let before = std::mem::take(&mut self.before);
        if self.starts.len() == self.room {
            self.left_out += 1;
        } else {
            self.starts.push(self.text.len());
            let line = self.line(':', hit.line_number(), hit.bytes());
            self.text += &before;
            self.text += &line;
        }
        Ok(!self.flag.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let text = self.line('-', line.line_number(), line.bytes());
        match line.kind() {
            SinkContextKind::Before => self.before += &text,
            SinkContextKind::After | SinkContextKind::Other if self.left_out == 0 => {
                self.text += &text;
            }
            SinkContextKind::After | SinkContextKind::Other => (),
        }
        Ok(!self.flag.is_cancelled())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.before.clear();
        if !self.starts.is_empty() {
            self.before += "--\n";
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.binary |= end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// The hits in all files. Files come in any order, and are shown in that of their names.
#[derive(Debug)]
pub(crate) struct AllMatches {
    most: usize,
    kept: Mutex<Collected>,
}

/// What may still be shown, and how much will not.
#[derive(Debug, Default)]
struct Collected {
    files: BTreeMap<PathBuf, ShownMatches>,
    /// The matches in these files that have their text.
    shown: usize,
    left_out: usize,
    files_left_out: usize,
}

/// What may be shown of a file.
#[derive(Debug)]
struct ShownMatches {
    text: String,
    /// Where each match begins, with the lines before it.
    starts: Vec<usize>,
    left_out: usize,
}

impl AllMatches {
    /// At most so many matches are shown.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// How many matches of a file may be shown, as far as is known.
    pub(crate) fn room(&self, path: &Path) -> usize {
        let kept = self.lock();
        let before = kept.files.last_key_value().is_some_and(|(last, _)| path < last.as_path());
        if before || kept.shown < self.most { self.most } else { 0 }
    }

    /// Adds a file, unless it turned out to be none of text.
    pub(crate) fn add(&self, hits: FileMatches<'_>) {
        let FileMatches { path, text, starts, left_out, binary, .. } = hits;
        if binary || starts.is_empty() && left_out == 0 {
            return;
        }
        let mut kept = self.lock();
        kept.shown += starts.len();
        kept.files.insert(path.to_owned(), ShownMatches { text, starts, left_out });
        // The last ones go as soon as there is enough without them.
        while let Some(last) = kept.files.last_entry() {
            let of_last = last.get().starts.len();
            if kept.shown - of_last < self.most {
                break;
            }
            kept.leave_out_last();
        }
    }

    /// What the model reads.
    pub(crate) fn text(self) -> String {
        let mut kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut text, mut room) = (String::new(), self.most);
        for mut file in std::mem::take(&mut kept.files).into_values() {
            file.cut(room);
            room -= file.starts.len();
            text += &file.text;
            kept.left_out += file.left_out;
            kept.files_left_out += usize::from(file.left_out > 0);
        }
        if text.is_empty() {
            return "no matches".to_owned();
        }
        if kept.left_out > 0 {
            let plural = if kept.left_out == 1 { "" } else { "es" };
            let matches = format!("{} more match{plural}", kept.left_out);
            let files = show::count(kept.files_left_out, "file");
            let _infallible = writeln!(text, "[{matches} in {files} left out]");
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collected {
    fn leave_out_last(&mut self) {
        if let Some((_, file)) = self.files.pop_last() {
            self.shown -= file.starts.len();
            self.left_out += file.starts.len() + file.left_out;
            self.files_left_out += 1;
        }
    }
}

impl ShownMatches {
    /// Drops matches that do not fit.
    fn cut(&mut self, room: usize) {
        if let Some(&end) = self.starts.get(room) {
            self.left_out += self.starts.len() - room;
            self.starts.truncate(room);
            self.text.truncate(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with so many matches, of which there is room for some.
    fn file(tally: &AllMatches, name: &str, matches: usize) {
        let flag = CancelFlag::default();
        let mut hits = FileMatches::new(Path::new(name), tally.room(Path::new(name)), &flag);
        for n in 0..matches {
            if n < hits.room {
                hits.starts.push(hits.text.len());
                hits.text += &format!("{name}{n} ");
            } else {
                hits.left_out += 1;
            }
        }
        tally.add(hits);
    }

    #[test]
    fn the_first_by_name_are_shown_in_whatever_order_they_come() {
        let expected = "a0 a1 b0 [5 more matches in 2 files left out]\n";
        for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"], ["c", "a", "b"]] {
            let tally = AllMatches::new(3);
            for name in order {
                file(&tally, name, if name == "a" { 2 } else { 3 });
            }
            assert_eq!(tally.text(), expected, "{order:?}");
        }
    }

    #[test]
    fn no_more_is_kept_than_may_be_shown() {
        let tally = AllMatches::new(2);
        for name in ["d", "b", "c", "a", "e"] {
            file(&tally, name, 2);
        }
        assert_eq!(tally.lock().files.keys().collect::<Vec<_>>(), [Path::new("a")]);
        assert_eq!(tally.room(Path::new("b")), 0);
        assert_eq!(tally.text(), "a0 a1 [8 more matches in 4 files left out]\n");
    }
}
