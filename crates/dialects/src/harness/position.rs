//! A position in the harness's event stream, as in `id:`, `Last-Event-ID` and `?after=`.
//!
//! Some events of the core are several events here. `17` is after all parts of event 17, `17~1` after its first
//! part, and `17.345` after 345 bytes of the output that followed it.

use std::fmt;

use quintet_kernel::Cursor;
use quintet_kernel::event::Seq;

/// A position in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// After an event or some text.
    After(Cursor),
    /// After this many parts of an event.
    Within(Seq, usize),
}

impl Position {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.split_once('~') {
            None => Cursor::parse(text).map(Self::After),
            Some((seq, parts)) => {
                let cursor =
                    Cursor::parse(seq).filter(|cursor| cursor.seq > 0 && cursor.offset == 0)?;
                let parts = Cursor::parse(parts).filter(|cursor| cursor.offset == 0)?.seq;
                Some(Self::Within(cursor.seq, usize::try_from(parts).ok()?))
            }
        }
    }

    /// The cursor to follow from.
    pub(super) fn cursor(self) -> Cursor {
        match self {
            Self::After(cursor) => cursor,
            Self::Within(seq, _) => Cursor::after(seq - 1),
        }
    }

    /// The number of parts of an event that the client has already.
    pub(super) fn parts_seen(self, seq: Seq) -> usize {
        match self {
            Self::Within(within, parts) if within == seq => parts,
            Self::Within(..) | Self::After(_) => 0,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(cursor) => cursor.fmt(f),
            Self::Within(seq, parts) => write!(f, "{seq}~{parts}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_parse_what_they_print() {
        for text in ["0", "17", "17.345", "17~1"] {
            assert_eq!(Position::parse(text).unwrap().to_string(), text);
        }
        for bad in
            ["", "x", "-1", "1.", ".1", "1~", "0~1", "1.2~3", "1~2.3", "99999999999999999999"]
        {
            assert_eq!(Position::parse(bad), None, "{bad:?}");
        }
    }
}
