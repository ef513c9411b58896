//! Skips JSON parsing for events that differ only in their text, as most events of a stream do.
//!
//! The shortcut is exact: if the bytes before and after a string are the same as in an event that was parsed,
//! and the string has nothing that JSON escapes or forbids, then parsing would give the same event with
//! another text.

use memchr::memchr2;
use quintet_kernel::model::Channel;

/// The JSON around the text of the last event that was nothing but a piece of output.
#[derive(Debug)]
pub(crate) struct Template {
    /// The JSON before the text, up to the quotation mark that opens it.
    before: Vec<u8>,
    /// The JSON after the text, from the quotation mark that closes it.
    after: Vec<u8>,
    channel: Channel,
}

impl Default for Template {
    fn default() -> Self {
        Self { before: Vec::new(), after: Vec::new(), channel: Channel::Text }
    }
}

impl Template {
    /// Stores the template of an event whose only output is `text`, if that borrows from the event.
    pub(crate) fn remember(&mut self, event: &[u8], channel: Channel, text: &str) {
        let Some((before, after)) = around(event, text) else { return };
        self.before.clear();
        self.before.extend_from_slice(before);
        self.after.clear();
        self.after.extend_from_slice(after);
        self.channel = channel;
    }

    /// The text of an event that matches the template.
    pub(crate) fn read<'a>(&self, event: &'a [u8]) -> Option<(Channel, &'a str)> {
        if self.before.is_empty() {
            return None;
        }
        let text = event.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        let plain = memchr2(b'"', b'\\', text).is_none() && text.iter().all(|byte| *byte >= b' ');
        // An empty text may mean that another field carries the content.
        if text.is_empty() || !plain {
            return None;
        }
        Some((self.channel, str::from_utf8(text).ok()?))
    }
}

fn around<'a>(event: &'a [u8], text: &str) -> Option<(&'a [u8], &'a [u8])> {
    let start = text.as_ptr().addr().checked_sub(event.as_ptr().addr())?;
    let (before, rest) = event.split_at_checked(start)?;
    let after = rest.strip_prefix(text.as_bytes())?;
    (before.ends_with(b"\"") && after.starts_with(b"\"")).then_some((before, after))
}
