//! The answer as a client received it.
//!
//! Quintet may put the text of several deltas into one event, so deltas are counted by the length
//! of the text: all have the same length and arrive in order.

use anyhow::{Result, ensure};
use memchr::{memchr, memmem};

use crate::clock;
use crate::script::{DELTA_BYTES, delta};

/// The text and end markers of a protocol. A frame is a line of an event stream, a line of a
/// socket, or a WebSocket message.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The text directly before each piece of output.
    text: &'static str,
    /// Contained in the frame that ends a successful turn.
    done: &'static str,
    /// One of these is contained in the frame that ends a failed turn.
    failed: &'static [&'static str],
}

pub(crate) const PROXY: Wire = Wire { text: "\"delta\":\"", done: "data: [DONE]", failed: &[] };
pub(crate) const HARNESS: Wire = Wire {
    text: "\"delta\":\"",
    done: "\"type\":\"turn_completed\"",
    failed: &["\"type\":\"turn_failed\"", "\"type\":\"session_canceled\""],
};
pub(crate) const DESKTOP: Wire =
    Wire { text: "{\"text\":\"", done: "event: assistant.final", failed: &["event: error"] };
pub(crate) const TERMINAL: Wire = Wire {
    text: "\"token\":\"",
    done: "\"method\":\"stream.complete\"",
    failed: &["\"method\":\"stream.error\"", "\"error\":{\"code\""],
};
pub(crate) const COMPUTER: Wire = Wire {
    text: "\"payload\":{\"text\":\"",
    done: "\"type\":\"streaming-complete\"",
    failed: &["\"type\":\"error\""],
};
pub(crate) const AGENT: Wire = Wire {
    text: "\"delta\":\"",
    done: "\"type\":\"agent.complete\"",
    failed: &["\"success\":false"],
};

pub(crate) const EDITOR: Wire = Wire {
    text: "\"content\":{\"text\":\"",
    done: "\"stopReason\":\"end_turn\"",
    failed: &["\"stopReason\":", "\"error\":{\"code\""],
};
pub(crate) const OPENAI: Wire =
    Wire { text: "\"content\":\"", done: "data: [DONE]", failed: &["\"error\":{"] };

/// The answer as a client received it.
#[derive(Debug)]
pub(crate) struct ReceivedAnswer {
    /// The arrival time of each delta.
    pub(crate) arrivals: Vec<u64>,
    /// Number of frames with text.
    pub(crate) events: usize,
    /// The arrival time of the end; 0 until then.
    pub(crate) ended: u64,
    wire: &'static Wire,
    bytes: usize,
    last: [u8; DELTA_BYTES],
    good: bool,
}

impl ReceivedAnswer {
    /// An empty answer in this protocol.
    pub(crate) fn new(wire: &'static Wire) -> Self {
        let (arrivals, last) = Default::default();
        Self { arrivals, events: 0, ended: 0, wire, bytes: 0, last, good: false }
    }

    /// Processes a frame that just arrived.
    pub(crate) fn frame(&mut self, frame: &[u8]) {
        if self.is_over() {
            return;
        }
        let at = clock::now();
        let (mark, mut rest) = (self.wire.text.as_bytes(), frame);
        let mut texts = 0;
        while let Some(found) = memmem::find(rest, mark) {
            rest = &rest[found + mark.len()..];
            let text = &rest[..memchr(b'"', rest).unwrap_or(rest.len())];
            self.text(text, at);
            rest = &rest[text.len()..];
            texts += 1;
        }
        if texts > 0 {
            self.events += 1;
        } else {
            self.end(frame, at);
        }
    }

    /// True once the turn has ended, successfully or not.
    pub(crate) fn is_over(&self) -> bool {
        self.ended > 0
    }

    /// Fails unless everything arrived, in order, and the turn succeeded.
    pub(crate) fn check(&self, deltas: usize) -> Result<()> {
        let count = self.arrivals.len();
        ensure!(self.good, "the turn did not end well after {count} deltas");
        ensure!(
            self.bytes == deltas * DELTA_BYTES,
            "{} bytes instead of {deltas} deltas came",
            self.bytes
        );
        ensure!(deltas == 0 || self.last == delta(deltas - 1), "the text is not in order");
        Ok(())
    }

    fn text(&mut self, text: &[u8], at: u64) {
        self.bytes += text.len();
        self.arrivals.resize(self.bytes / DELTA_BYTES, at);
        if let Some(last) = text.last_chunk() {
            self.last = *last;
        }
    }

    fn end(&mut self, frame: &[u8], at: u64) {
        let has = |word: &str| memmem::find(frame, word.as_bytes()).is_some();
        if has(self.wire.done) {
            (self.good, self.ended) = (true, at);
        } else if self.wire.failed.iter().any(|word| has(word)) {
            self.ended = at;
        }
    }
}
