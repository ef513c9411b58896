//! Which part of a conversation a summary may stand for: always whole turns, so that no call is
//! parted from its result.

use std::sync::Arc;

use crate::id::{MessageId, TurnId};
use crate::message::Message;
use crate::prompt::history;
use crate::session::state::State;

/// How many turns stay word for word, where there are at least twice as many.
const KEPT: usize = 3;

/// The last message before the open turn, if there is no summary up to it yet.
pub(super) fn all(state: &State) -> Option<MessageId> {
    past(state).last().map(|message| message.id.clone())
}

/// The same without the last few turns. A conversation of few turns is summarized whole: they must be
/// long ones, and what is kept of them would soon be too much again.
pub(super) fn aged(state: &State) -> Option<MessageId> {
    let past = past(state);
    let mut turns: Vec<&TurnId> = past.iter().map(|message| &message.turn).collect();
    turns.dedup();
    if turns.len() < 2 * KEPT {
        return all(state);
    }
    let last = turns[turns.len() - KEPT - 1];
    past.iter().rfind(|message| message.turn == *last).map(|message| message.id.clone())
}

/// What models read in full, apart from the open turn.
fn past(state: &State) -> Vec<&Arc<Message>> {
    let mut past = history(state);
    let summary = state.compaction.summary.as_ref();
    let old = summary.and_then(|summary| past.iter().position(|m| m.id == summary.upto));
    if let Some(old) = old {
        past.drain(..=old);
    }
    past.retain(|message| state.open.as_ref().is_none_or(|open| message.turn != open.id));
    past
}
