//! Applies events about summaries and about the facts that they save to memory.

use crate::id::{MessageId, TurnId};
use crate::model::Usage;
use crate::session::SessionData;
use crate::session::state::{Compaction, HistorySummary, PendingMemory};
use crate::time::Time;

/// History that models no longer read needs no summary. Workspace context that was sent with it moves to the
/// system prompt.
pub(super) fn forgotten(state: &mut SessionData, upto: &MessageId) {
    state.forgotten = state.position(upto).map_or(state.forgotten, |last| last + 1);
    state.first_read = state.turns.len();
    state.compaction = Compaction::default();
    state.context.fold_updates();
}

/// Stores a summary. One in the middle of a turn is not used if that turn is retried; then the previous one,
/// from before the turn, applies.
fn summarized(state: &mut SessionData, upto: &MessageId, text: &str) {
    let Some(at) = state.position(upto) else { return };
    let summary = HistorySummary { upto: upto.clone(), text: text.to_owned(), at };
    let before = state.compaction.summary.replace(summary);
    let turn = |at: usize| &state.messages[at].turn;
    if let Some(before) = before.filter(|before| turn(before.at) != turn(at)) {
        state.compaction.earlier = Some(before);
    }
}

/// Results up to a message are shortened from now on; earlier token counts are no longer valid.
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

/// The parts of the prompt around the conversation changed: earlier token counts are no longer valid.
pub(super) fn prompt_changed(state: &mut SessionData) {
    state.compaction.counted = None;
}

/// Another model has its own tokenizer and context window.
pub(super) fn model_switched(state: &mut SessionData) {
    prompt_changed(state);
    state.compaction.window = None;
}

/// The model's context window is smaller than assumed.
pub(super) fn limit_window(state: &mut SessionData, window: Option<u64>) {
    state.compaction.window = window.or(state.compaction.window);
}

/// A new turn may retry a compaction that failed in the last one. For a retried or queued turn, earlier token
/// counts are not valid.
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

/// A summary replaces the history up to a message, which leaves about `left` tokens.
pub(super) fn compacted(state: &mut SessionData, upto: &MessageId, text: &str, left: Option<u64>) {
    summarized(state, upto, text);
    let before = std::mem::take(&mut state.compaction);
    let Compaction { summary, earlier, shortened, window, .. } = before;
    let floor = left.unwrap_or_default();
    let after = Compaction::default();
    state.compaction = Compaction { summary, earlier, shortened, floor, window, ..after };
    state.context.fold_updates();
}

/// Marks the facts of a summary to be saved to memory.
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
