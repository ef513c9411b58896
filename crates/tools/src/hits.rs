//! What a search finds in a file, and in all of them.

use std::cell::OnceCell;
use std::fmt::Write;
use std::io;
use std::path::Path;

use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use crate::blocking::Flag;
use crate::show;

/// How much of a line is shown.
const MOST_BYTES: usize = 400;

/// The hits in one file.
pub(crate) struct Hits<'a> {
    path: &'a Path,
    /// How that is written, once there is something to show.
    name: OnceCell<String>,
    room: usize,
    flag: &'a Flag,
    text: String,
    /// Lines before a match, which are shown only if the match is.
    before: String,
    shown: usize,
    left_out: usize,
    binary: bool,
}

impl<'a> Hits<'a> {
    /// At most `room` matches are shown, the others counted.
    pub(crate) fn new(path: &'a Path, room: usize, flag: &'a Flag) -> Self {
        Self {
            path,
            name: OnceCell::new(),
            room,
            flag,
            text: String::new(),
            before: String::new(),
            shown: 0,
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

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> io::Result<bool> {
        let before = std::mem::take(&mut self.before);
        if self.shown == self.room {
            self.left_out += 1;
        } else {
            self.shown += 1;
            let line = self.line(':', hit.line_number(), hit.bytes());
            self.text += &before;
            self.text += &line;
        }
        Ok(!self.flag.is_down())
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
        Ok(!self.flag.is_down())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.before.clear();
        if self.shown > 0 {
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

/// The hits in all files.
#[derive(Debug)]
pub(crate) struct Tally {
    room: usize,
    text: String,
    shown: usize,
    /// How many files have something.
    files: usize,
    left_out: usize,
    files_left_out: usize,
}

impl Tally {
    pub(crate) fn new(most: usize) -> Self {
        let (shown, files, left_out, files_left_out) = (0, 0, 0, 0);
        Self { room: most, text: String::new(), shown, files, left_out, files_left_out }
    }

    /// How many more matches are shown.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Adds a file, unless it turned out to be none of text.
    pub(crate) fn add(&mut self, hits: Hits<'_>) {
        if hits.binary {
            return;
        }
        self.room -= hits.shown;
        self.shown += hits.shown;
        self.text += &hits.text;
        self.files += usize::from(hits.shown + hits.left_out > 0);
        self.left_out += hits.left_out;
        self.files_left_out += usize::from(hits.left_out > 0);
    }

    /// How many matches are shown.
    pub(crate) fn shown(&self) -> usize {
        self.shown
    }

    /// Adds what was found in the files that come next: all of it or, where there is no room, the number.
    pub(crate) fn join(&mut self, next: Self) {
        self.files += next.files;
        if self.room == 0 {
            self.left_out += next.shown + next.left_out;
            self.files_left_out += next.files;
            return;
        }
        self.room = self.room.saturating_sub(next.shown);
        self.shown += next.shown;
        self.text += &next.text;
        self.left_out += next.left_out;
        self.files_left_out += next.files_left_out;
    }

    /// What the model reads.
    pub(crate) fn text(mut self) -> String {
        if self.text.is_empty() {
            return "no matches".to_owned();
        }
        if self.left_out > 0 {
            let plural = if self.left_out == 1 { "" } else { "es" };
            let matches = format!("{} more match{plural}", self.left_out);
            let files = show::count(self.files_left_out, "file");
            let _infallible = writeln!(self.text, "[{matches} in {files} left out]");
        }
        self.text
    }
}
