//! What is remembered of making old history short.

use super::{on_open, spent};
use crate::event::Event;
use crate::session::State;
use crate::session::state::Summary;

/// Takes an event about a compaction into the state.
pub(super) fn evolve(state: &mut State, event: &Event) {
    match event {
        Event::CompactionRequested { upto, .. } => {
            state.compaction.pending = Some(upto.clone());
            on_open(state, |open| open.compacted = true);
        }
        Event::Compacted { upto, summary, usage, .. } => {
            spent(state, *usage);
            state.compaction.pending = None;
            state.compaction.tokens = 0;
            state.context.settle();
            state.compaction.summary = Some(Summary { upto: upto.clone(), text: summary.clone() });
        }
        Event::CompactionFailed { .. } => state.compaction.pending = None,
        _ => {}
    }
}
