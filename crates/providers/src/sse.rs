//! Parses server-sent events from a stream of bytes.
//!
//! Only `data` matters to model APIs; comments and other fields are skipped. Network reads may
//! split a line, and even a character, anywhere.

use memchr::memchr;

/// Maximum length of one event, in bytes.
pub(crate) const EVENT_BYTES_LIMIT: usize = 8 << 20;

/// An event is longer than [`EVENT_BYTES_LIMIT`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Splits bytes into events; buffers incomplete ones.
#[derive(Debug, Default)]
pub(crate) struct Framer {
    /// The beginning of a line.
    line: Vec<u8>,
    /// The data lines of the event so far, each with its line feed.
    data: Vec<u8>,
}

impl Framer {
    /// Takes bytes and passes on the data of every event that they complete. Fails if an event is too long.
    pub(crate) fn feed<E: From<TooLong>>(
        &mut self,
        mut bytes: &[u8],
        mut event: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.line.is_empty() {
                take_line(&mut self.data, line, &mut event)?;
            } else {
                self.line.extend_from_slice(line);
                take_line(&mut self.data, &self.line, &mut event)?;
                self.line.clear();
            }
            self.check()?;
        }
        self.line.extend_from_slice(bytes);
        Ok(self.check()?)
    }

    /// Passes on an event without a final blank line, because some servers omit it.
    pub(crate) fn end<E>(
        &mut self,
        mut event: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        take_line(&mut self.data, &self.line, &mut event)?;
        self.line.clear();
        take_line(&mut self.data, b"", &mut event)
    }

    fn check(&self) -> Result<(), TooLong> {
        if self.line.len() + self.data.len() > EVENT_BYTES_LIMIT { Err(TooLong) } else { Ok(()) }
    }
}

fn take_line<E>(
    data: &mut Vec<u8>,
    line: &[u8],
    event: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(value) = line.strip_prefix(b"data:") {
        data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        data.push(b'\n');
        return Ok(());
    }
    if !line.is_empty() || data.is_empty() {
        return Ok(());
    }
    let outcome = event(&data[..data.len() - 1]);
    data.clear();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(reads: &[&[u8]]) -> Vec<String> {
        let mut seen = Vec::new();
        let mut framer = Framer::default();
        let mut keep = |data: &[u8]| {
            seen.push(String::from_utf8_lossy(data).into_owned());
            Ok::<_, TooLong>(())
        };
        for read in reads {
            framer.feed(read, &mut keep).unwrap();
        }
        framer.end(&mut keep).unwrap();
        seen
    }

    #[test]
    fn only_data_matters() {
        let stream = b": hello\r\nevent: x\r\ndata: a\r\ndata:b\r\nid: 7\r\n\r\n\r\n\n:\n\ndata: c";
        assert_eq!(events(&[stream]), ["a\nb", "c"]);
    }

    #[test]
    fn reads_may_end_anywhere() {
        let stream = "data: für\n\ndata: 日本\r\n\r\ndata:  x\n\n".as_bytes();
        for at in 0..stream.len() {
            assert_eq!(events(&[&stream[..at], &stream[at..]]), ["für", "日本", " x"], "{at}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut framer = Framer::default();
        let piece = vec![b'x'; EVENT_BYTES_LIMIT / 2 + 1];
        let ignore = |_: &[u8]| Ok::<_, TooLong>(());
        assert_eq!(framer.feed(&piece, ignore), Ok(()));
        assert_eq!(framer.feed(&piece, ignore), Err(TooLong));
    }
}
