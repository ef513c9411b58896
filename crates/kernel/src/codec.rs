//! The journal's format: one JSON value per event, stored next to a format version.
//!
//! `tests/golden/journal-v1.ndjson` holds every kind of event as version 1 writes it and must
//! decode forever. A change that old readers cannot decode gets a new version and a branch in
//! [`decode`].

use std::io;

use crate::event::Event;

/// The version that [`encode`] writes.
pub const VERSION: u16 = 1;

/// Why an event cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The event was written by a newer version.
    #[error("the event has format {0}, and this version reads up to {VERSION}")]
    Newer(u16),
    /// The bytes are not a valid event.
    #[error("the event cannot be read: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// Encodes an event.
pub fn encode(event: &Event) -> Vec<u8> {
    serde_json::to_vec(event).expect("events have string keys and no failing serializers")
}

/// The length of an encoded event in bytes.
pub fn size(event: &Event) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, event)
        .expect("events have string keys and no failing serializers");
    count.0
}

/// Decodes an event. Fails if the version is newer than [`VERSION`] or the bytes are damaged.
pub fn decode(version: u16, bytes: &[u8]) -> Result<Event, DecodeError> {
    match version {
        0..=VERSION => Ok(serde_json::from_slice(bytes)?),
        newer => Err(DecodeError::Newer(newer)),
    }
}
