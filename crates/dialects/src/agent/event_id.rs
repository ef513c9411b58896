//! Names of events: `evt_<session>_<sequence>`.

use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use serde_json::Value;

/// The name of a session's event.
pub(super) fn event_id(session: &SessionId, seq: Seq) -> String {
    format!("evt_{session}_{seq}")
}

/// The session and the number behind a name.
pub(super) fn parse(name: &str) -> Option<(SessionId, Seq)> {
    let (session, seq) = name.strip_prefix("evt_")?.rsplit_once('_')?;
    Some((SessionId::parse(session)?, sequence(&Value::String(seq.to_owned()))?))
}

/// The number behind a name, or a number as it is. The name may be that of an event shared with the
/// session it was forked from: shared events have the same numbers.
pub(super) fn sequence(value: &Value) -> Option<Seq> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let digits = match text.strip_prefix("evt_") {
                Some(rest) => rest.rsplit_once('_')?.1,
                None => text,
            };
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        }
        _ => None,
    }
}
