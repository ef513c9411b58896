//! The journal's format: one JSON value an event, with a version beside it.
//!
//! `tests/golden/journal-v1.ndjson` holds every kind of event as version 1 writes it and must decode
//! for ever. A change that old readers cannot take gets a new version and a branch in [`decode`].

use std::io;

use crate::event::Event;

/// The version that [`encode`] writes.
pub const VERSION: u16 = 1;

/// Why an event cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The event was written by a newer version.
    #[error("the event has format {0}, and this version reads up to {VERSION}")]
    Newer(u16),
    /// The event is damaged.
    #[error("the event cannot be read: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// Writes an event.
pub fn encode(event: &Event) -> Vec<u8> {
    serde_json::to_vec(event).expect("events have string keys and no failing serializers")
}

/// How many bytes an event takes when it is written.
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

/// Reads an event.
pub fn decode(version: u16, bytes: &[u8]) -> Result<Event, DecodeError> {
    match version {
        0..=VERSION => Ok(serde_json::from_slice(bytes)?),
        newer => Err(DecodeError::Newer(newer)),
    }
}
