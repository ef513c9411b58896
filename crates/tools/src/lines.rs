//! A window of lines of a text, bounded in lines and bytes.

use std::fmt::Write;
use std::io::{self, BufRead, Read};

use crate::utf8;

/// The most lines per call.
pub(crate) const LINES_LIMIT: u64 = 400;
/// The most bytes per call.
pub(crate) const MOST_BYTES: usize = 256 * 1024;
/// The bytes that are checked for binary content.
const PROBE_BYTES: usize = 8 * 1024;

/// Which lines are wanted: from the first to the last, both counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) first: u64,
    pub(crate) last: Option<u64>,
}

/// A window that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinesError {
    #[error("end_line {1} is before start_line {0}")]
    Backwards(u64, u64),
    #[error("start_line {0} is after the end: the file has {1} lines")]
    AfterEnd(u64, u64),
    #[error("binary file: only text can be read")]
    Binary,
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a range of lines. The text ends with a note if there is more.
///
/// `size` is the length of the file; `go_on` is called now and then and stops the read if false.
pub(crate) fn read(
    mut text: impl BufRead,
    size: u64,
    range: Range,
    go_on: impl Fn() -> bool,
) -> Result<String, LinesError> {
    let first = range.first.max(1);
    if let Some(last) = range.last.filter(|last| *last < first) {
        return Err(LinesError::Backwards(first, last));
    }
    if text.fill_buf()?.iter().take(PROBE_BYTES).any(|byte| *byte == 0) {
        return Err(LinesError::Binary);
    }
    let skipped = skip(&mut text, first, &go_on)?;
    let window = take(&mut text, first, range.last)?;
    if window.bytes.contains(&0) {
        return Err(LinesError::Binary);
    }
    Ok(window.show(first, size.saturating_sub(skipped)))
}

/// Skips the lines before `first`; says how many bytes they have.
fn skip(text: &mut impl BufRead, first: u64, go_on: &impl Fn() -> bool) -> Result<u64, LinesError> {
    let mut bytes = 0;
    for line in 1..first {
        if !go_on() {
            return Err(LinesError::Cancelled);
        }
        match text.skip_until(b'\n')? {
            0 => return Err(LinesError::AfterEnd(first, line - 1)),
            skipped => bytes += skipped as u64,
        }
    }
    // An empty file has no line, but may be read.
    if first > 1 && text.fill_buf()?.is_empty() {
        return Err(LinesError::AfterEnd(first, first - 1));
    }
    Ok(bytes)
}

struct Window {
    bytes: Vec<u8>,
    /// The last line of which there is something.
    last: u64,
    /// Whether that line is cut.
    cut: bool,
}

fn take(text: &mut impl BufRead, first: u64, last: Option<u64>) -> io::Result<Window> {
    let allowed = first.saturating_add(LINES_LIMIT - 1);
    let end = last.map_or(allowed, |last| last.min(allowed));
    let mut window = Window { bytes: Vec::new(), last: first, cut: false };
    for line in first..=end {
        let room = MOST_BYTES - window.bytes.len();
        let read = text.by_ref().take(room as u64).read_until(b'\n', &mut window.bytes)?;
        if read == 0 {
            break;
        }
        window.last = line;
        window.cut = read == room && !window.bytes.ends_with(b"\n");
        if read == room {
            break;
        }
    }
    Ok(window)
}

impl Window {
    /// The text; `size` is what there was from its start to the end of the file.
    fn show(mut self, first: u64, size: u64) -> String {
        let more = size > self.bytes.len() as u64;
        if more && self.cut {
            self.bytes.truncate(utf8::whole(&self.bytes));
        }
        let left = size.saturating_sub(self.bytes.len() as u64);
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if more {
            let start = if text.ends_with('\n') { "" } else { "\n" };
            let advice = if self.cut {
                format!("line {} is cut", self.last)
            } else {
                format!("go on with start_line {}", self.last + 1)
            };
            let lines = format!("lines {first} to {}", self.last);
            let _infallible = write!(text, "{start}[{lines}; {left} more bytes follow; {advice}]");
        }
        text
    }
}

#[cfg(test)]
mod tests;
