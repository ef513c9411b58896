//! Remembers what became of summaries and of what they named as worth keeping.

use crate::id::{MessageId, TurnId};
use crate::model::Usage;
use crate::session::SessionData;
use crate::session::state::{Compaction, HistorySummary, PendingMemory};
use crate::time::Time;

/// What models do not read any more needs no summary. What was told of the workspace beside it stands
/// at the beginning from now on.
pub(super) fn forgotten(state: &mut SessionData, upto: &MessageId) {
    state.forgotten = state.position(upto).map_or(state.forgotten, |last| last + 1);
    state.first_read = state.turns.len();
    state.compaction = Compaction::default();
    state.context.fold_updates();
}

/// A summary in the middle of a turn is of no use if that turn is tried again: then the one that was
/// made before the turn is read.
fn summarized(state: &mut SessionData, upto: &MessageId, text: &str) {
    let Some(at) = state.position(upto) else { return };
    let summary = HistorySummary { upto: upto.clone(), text: text.to_owned(), at };
    let before = state.compaction.summary.replace(summary);
    let turn = |at: usize| &state.messages[at].turn;
    if let Some(before) = before.filter(|before| turn(before.at) != turn(at)) {
        state.compaction.earlier = Some(before);
    }
}

/// Results up to a message are shortened from now on; what was counted before says nothing any more.
pub(super) fn shortened(state: &mut SessionData, upto: Option<&MessageId>) {
    if let Some(at) = upto.and_then(|upto| state.position(upto)) {
        state.compaction.shortened = at + 1;
        state.compaction.counted = None;
    }
}

/// A model read the conversation, and its provider may have counted it.
pub(super) fn tokens_counted(state: &mut SessionData, usage: Usage) {
    state.compaction.counted = (usage.total() > 0).then_some(state.messages.len());
    state.compaction.overflow = false;
}

/// What stands beside the conversation in a prompt is another: what was counted says nothing any more.
pub(super) fn prompt_changed(state: &mut SessionData) {
    state.compaction.counted = None;
}

/// Another model counts otherwise, and reads more or less at once.
pub(super) fn model_switched(state: &mut SessionData) {
    prompt_changed(state);
    state.compaction.window = None;
}

/// The model reads less at once than it was said to, where that is known.
pub(super) fn limit_window(state: &mut SessionData, window: Option<u64>) {
    state.compaction.window = window.or(state.compaction.window);
}

/// A turn may try again what came to nothing in the last one. One that is tried again, or was waiting,
/// does not read what was counted.
pub(super) fn turn_started(state: &mut SessionData, turn: &TurnId, attempt: u32) {
    let newest = state.turns.last().is_some_and(|last| last.id == *turn);
    let compaction = &mut state.compaction;
    (compaction.floor, compaction.failed, compaction.overflow) = (0, false, false);
    compaction.window = None;
    compaction.counted = compaction.counted.filter(|_| newest && attempt == 1);
}

/// A summary is being written.
pub(super) fn requested(state: &mut SessionData, upto: &MessageId, tokens: u64, overflow: bool) {
    state.compaction.pending = Some(upto.clone());
    state.compaction.floor = tokens;
    state.compaction.overflow = overflow;
}

/// A summary stands for the history up to a message, with about so many tokens left to read.
pub(super) fn compacted(state: &mut SessionData, upto: &MessageId, text: &str, left: Option<u64>) {
    summarized(state, upto, text);
    let before = std::mem::take(&mut state.compaction);
    let Compaction { summary, earlier, shortened, window, .. } = before;
    let floor = left.unwrap_or_default();
    let after = Compaction::default();
    state.compaction = Compaction { summary, earlier, shortened, floor, window, ..after };
    state.context.fold_updates();
}

/// What a summary named as worth keeping is to be saved.
pub(super) fn save_facts(state: &mut SessionData, upto: &MessageId, facts: &[String], at: Time) {
    if !facts.is_empty() {
        state.saving.push(PendingMemory { upto: upto.clone(), at, facts: facts.to_vec() });
    }
}

/// A summary could not be written.
pub(super) fn failed(state: &mut SessionData) {
    state.compaction.pending = None;
    state.compaction.failed = true;
}
