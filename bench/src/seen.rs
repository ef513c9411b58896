//! What a client saw of an answer.
//!
//! Quintet may put the text of several deltas into one event, so deltas are counted by the length of
//! the text: all are equally long and come in order.

use anyhow::{Result, ensure};
use memchr::{memchr, memmem};

use crate::ask::{DELTA, delta};

/// What a client saw of an answer.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// When each delta was there.
    pub(crate) arrivals: Vec<u64>,
    /// How many events brought text.
    pub(crate) events: usize,
    bytes: usize,
    last: [u8; DELTA],
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Good,
    Bad,
}

impl Seen {
    /// Takes a line of an event stream that came at this time.
    pub(crate) fn line(&mut self, line: &[u8], at: u64) {
        const MARK: &[u8] = b"\"delta\":\"";
        if !line.starts_with(b"data:") {
            return;
        }
        match memmem::find(line, MARK) {
            Some(found) => {
                let text = &line[found + MARK.len()..];
                self.text(&text[..memchr(b'"', text).unwrap_or(text.len())], at);
            }
            None => self.end = self.end.or_else(|| end(line)),
        }
    }

    /// Whether the answer is over.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Fails unless everything came, in order, and the turn ended well.
    pub(crate) fn check(&self, deltas: usize) -> Result<()> {
        let count = self.arrivals.len();
        ensure!(self.end == Some(End::Good), "the turn did not end well after {count} deltas");
        ensure!(
            self.bytes == deltas * DELTA,
            "{} bytes instead of {deltas} deltas came",
            self.bytes
        );
        ensure!(deltas == 0 || self.last == delta(deltas - 1), "the text is not in order");
        Ok(())
    }

    fn text(&mut self, text: &[u8], at: u64) {
        self.events += 1;
        self.bytes += text.len();
        self.arrivals.resize(self.bytes / DELTA, at);
        if let Some(last) = text.last_chunk() {
            self.last = *last;
        }
    }
}

fn end(line: &[u8]) -> Option<End> {
    let has = |word: &str| memmem::find(line, word.as_bytes()).is_some();
    if has("\"type\":\"turn_completed\"") || line == b"data: [DONE]" {
        Some(End::Good)
    } else if has("\"type\":\"turn_failed\"") || has("\"type\":\"session_canceled\"") {
        Some(End::Bad)
    } else {
        None
    }
}
