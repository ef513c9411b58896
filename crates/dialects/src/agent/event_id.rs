//! Ids of events: `evt_<session>_<sequence>`.

use std::fmt;

use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use serde_json::Value;

/// The id of an event.
pub(super) fn event_id(session: &SessionId, seq: Seq) -> String {
    format!("evt_{session}_{seq}")
}

/// The session and sequence in an event id.
pub(super) fn parse(name: &str) -> Option<(SessionId, Seq)> {
    let (session, seq) = name.strip_prefix("evt_")?.rsplit_once('_')?;
    Some((SessionId::parse(session)?, sequence(&Value::String(seq.to_owned()))?))
}

/// An event in a request, by its sequence or its id.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct EventRef {
    pub(super) seq: Seq,
    /// The session in the id, if it is not the session of the request.
    pub(super) other: Option<SessionId>,
}

impl EventRef {
    /// Parses an event in a request about a session.
    pub(super) fn parse(value: &Value, session: &SessionId) -> Option<Self> {
        let (named, seq) = match value {
            Value::String(text) if text.starts_with("evt_") => {
                let (named, seq) = parse(text)?;
                (Some(named), seq)
            }
            _ => (None, sequence(value)?),
        };
        Some(Self { seq, other: named.filter(|named| named != session) })
    }
}

impl From<Seq> for EventRef {
    fn from(seq: Seq) -> Self {
        Self { seq, other: None }
    }
}

impl fmt::Debug for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.other {
            None => write!(f, "{}", self.seq),
            Some(other) => write!(f, "{} of {other}", self.seq),
        }
    }
}

/// A sequence, as a number or as a string of digits.
fn sequence(value: &Value) -> Option<Seq> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    }
}
