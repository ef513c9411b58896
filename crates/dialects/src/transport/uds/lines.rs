//! Messages, one per line, with a length limit.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::UnixStream;

/// Bytes of one read.
const READ_BYTES: usize = 16 * 1024;

/// A received line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A complete line, without its end.
    Complete(Vec<u8>),
    /// A line that was too long; it was discarded.
    TooLong,
}

/// The lines of a connection.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were searched for a line end.
    searched: usize,
    /// True while the rest of a line that is too long is dropped.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// A reader of lines with at most this many bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, buffer: Vec::new(), searched: 0, skipping: false }
    }

    /// The next line; `None` at the end. Text after the last line end is not a line. Cancel-safe.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.buffered() {
                return Ok(Some(line));
            }
            self.buffer.reserve(READ_BYTES);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// True if data has arrived that was not read yet, even if the runtime has not noticed it.
    pub fn has_unread(&self) -> bool
    where
        R: AsRef<UnixStream>,
    {
        let unread = rustix::io::ioctl_fionread(self.reader.as_ref());
        !self.buffer.is_empty() || unread.is_ok_and(|bytes| bytes > 0)
    }

    fn buffered(&mut self) -> Option<Line> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return self.overflow();
            };
            let line = self.take(self.searched + found);
            // The rest of a refused line is dropped.
            if !std::mem::take(&mut self.skipping) {
                return Some(line);
            }
        }
    }

    /// Refuses a line as soon as it is too long, and discards the rest of it.
    fn overflow(&mut self) -> Option<Line> {
        // A carriage return may precede the line end.
        let refused = !self.skipping && self.searched > self.limit + 1;
        self.skipping |= refused;
        if self.skipping {
            (self.buffer, self.searched) = (Vec::new(), 0);
        }
        refused.then_some(Line::TooLong)
    }

    fn take(&mut self, end: usize) -> Line {
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.pop();
        self.searched = 0;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.len() > self.limit { Line::TooLong } else { Line::Complete(line) }
    }
}
