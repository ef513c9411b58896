//! Remembers what became of summaries and of what they named as worth keeping.

use crate::event::Event;
use crate::id::MessageId;
use crate::session::Data;
use crate::session::state::{Saving, Summary};
use crate::time::Time;

use super::{on_open, spent};

/// What models do not read any more needs no summary.
pub(super) fn forgotten(state: &mut Data, upto: &MessageId) {
    let last = state.messages.iter().position(|message| message.id == *upto);
    state.forgotten = last.map_or(state.forgotten, |last| last + 1);
    state.compaction.summary = None;
    state.compaction.tokens = 0;
}

/// Takes an event about a summary into the state; any other is none of its business.
pub(super) fn evolve(state: &mut Data, event: &Event, at: Time) {
    match event {
        Event::CompactionRequested { upto, .. } => {
            state.compaction.pending = Some(upto.clone());
            on_open(state, |open| open.compacted = true);
        }
        Event::Compacted { upto, summary, usage, facts, .. } => {
            spent(state, *usage);
            state.compaction.pending = None;
            state.compaction.tokens = 0;
            state.context.settle();
            state.compaction.summary = Some(Summary { upto: upto.clone(), text: summary.clone() });
            if !facts.is_empty() {
                let (upto, facts) = (upto.clone(), facts.clone());
                state.saving.push(Saving { upto, at, facts });
            }
        }
        Event::CompactionFailed { .. } => state.compaction.pending = None,
        Event::MemorySaved { upto, .. } | Event::MemoryNotSaved { upto, .. } => {
            state.saving.retain(|saving| saving.upto != *upto);
        }
        _ => {}
    }
}
