//! Snapshots of a session's state, so that loading a session does not read its whole journal.
//!
//! A snapshot only saves time: the journal holds everything. One that cannot be read, or that
//! another version wrote, is ignored, and the journal is read from its first event.
//!
//! `tests/golden/snapshot-shape.txt` holds the fields that are written. If they change, or if
//! [`evolve`] treats an old event differently, [`SNAPSHOT_FORMAT`] has to change, too.
//!
//! [`evolve`]: crate::session::evolve

use std::sync::Arc;

use crate::event::Seq;
use crate::id::SessionId;
use crate::policy::Rules;
use crate::port::Snapshot;
use crate::session::State;

/// The current format, incremented with every change of the state. Snapshots of other releases
/// are ignored as well, because events may have led to another state there.
pub const SNAPSHOT_FORMAT: u32 = 5;

/// Minimum number of new events for a snapshot.
const MIN_NEW_EVENTS: Seq = 1000;
/// A quarter of the events must be new, so that the cost of snapshots stays proportional to the
/// session's length.
const MIN_NEW_SHARE: Seq = 4;

/// True if enough events are new since the last snapshot (0 if there is none).
pub fn is_due(head: Seq, last: Seq) -> bool {
    head.saturating_sub(last) >= MIN_NEW_EVENTS.max(head / MIN_NEW_SHARE)
}

fn format() -> String {
    format!("{}/{SNAPSHOT_FORMAT}", env!("CARGO_PKG_VERSION"))
}

/// Encodes a state.
pub fn take(state: &State) -> Snapshot {
    let body = serde_json::to_vec(state.data()).expect("a state has no failing serializers");
    Snapshot { seq: state.head, format: format(), body }
}

/// Decodes the state of a session from a snapshot of its own or of an ancestor; `None` if it
/// cannot be used.
pub fn restore(snapshot: &Snapshot, session: &SessionId, rules: &Arc<Rules>) -> Option<State> {
    if snapshot.format != format() {
        return None;
    }
    let data = serde_json::from_slice(&snapshot.body).ok()?;
    let state = State::restored(data, session.clone(), Arc::clone(rules));
    (state.head == snapshot.seq).then_some(state)
}
