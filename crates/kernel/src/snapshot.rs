//! A session's state, written down, so that waking a session does not take all of its journal.
//!
//! A snapshot is a shortcut and never the truth: the journal has everything. One that cannot be
//! read, or that another version wrote, is passed over, and the journal is read from its beginning.
//!
//! `tests/golden/snapshot-shape.txt` holds the fields that are written. If they change, or if
//! [`evolve`] comes to make something else of an old event, [`SNAPSHOT_FORMAT`] has to change, too.
//!
//! [`evolve`]: crate::session::evolve

use std::sync::Arc;

use crate::event::Seq;
use crate::id::SessionId;
use crate::policy::Rules;
use crate::port::Snapshot;
use crate::session::State;

/// How snapshots are written today: counted up with every change of what a state is made of. Those
/// of another release are not read either, because events may have led to another state there.
pub const SNAPSHOT_FORMAT: u32 = 4;

/// Fewer new events are not worth a snapshot.
const MIN_NEW_EVENTS: Seq = 1000;
/// How much of a session must be new: a quarter, so that what is written for snapshots stays in
/// proportion to the session however long it lives.
const MIN_NEW_SHARE: Seq = 4;

/// Whether enough is new in a session since its last snapshot; 0 if there is none.
pub fn is_due(head: Seq, last: Seq) -> bool {
    head.saturating_sub(last) >= MIN_NEW_EVENTS.max(head / MIN_NEW_SHARE)
}

fn format() -> String {
    format!("{}/{SNAPSHOT_FORMAT}", env!("CARGO_PKG_VERSION"))
}

/// Writes a state down.
pub fn take(state: &State) -> Snapshot {
    let body = serde_json::to_vec(state.data()).expect("a state has no failing serializers");
    Snapshot { seq: state.head, format: format(), body }
}

/// Reads a session's state back, from a snapshot of its own or of a session whose history it
/// shares; nothing if it cannot be read.
pub fn restore(snapshot: &Snapshot, session: &SessionId, rules: &Arc<Rules>) -> Option<State> {
    if snapshot.format != format() {
        return None;
    }
    let data = serde_json::from_slice(&snapshot.body).ok()?;
    let state = State::restored(data, session.clone(), Arc::clone(rules));
    (state.head == snapshot.seq).then_some(state)
}
