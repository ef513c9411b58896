//! Selects the messages of a session that models read, and the summary that replaces earlier ones.
//!
//! The cost depends on what is read, not on the length of the session.

use std::sync::Arc;

use crate::id::MessageId;
use crate::message::{Message, Role};
use crate::session::{HistorySummary, State};

/// What models read of a session.
#[derive(Debug, Default)]
pub(crate) struct History<'a> {
    /// The client's message of the open turn, if the summary covers it: it is kept unchanged.
    pub(crate) request: Option<HistoryEntry<'a>>,
    /// The summary of everything before `recent`.
    pub(crate) summary: Option<&'a HistorySummary>,
    /// The messages that are read unchanged, turn by turn.
    pub(crate) recent: Vec<HistoryEntry<'a>>,
}

/// A message and its index in the session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryEntry<'a> {
    pub(crate) at: usize,
    /// The place of its turn among all of the session.
    pub(crate) turn: usize,
    pub(crate) message: &'a Arc<Message>,
}

impl History<'_> {
    /// The number of messages up to and including this one, if it is in the list.
    pub(crate) fn upto(&self, id: &MessageId) -> Option<usize> {
        let place = self.recent.iter().position(|entry| entry.message.id == *id);
        place.map(|n| n + 1)
    }

    /// The number of turns with at least one message in the list.
    pub(crate) fn turns(entries: &[HistoryEntry<'_>]) -> u64 {
        let begins = |pair: &&[HistoryEntry<'_>]| pair[0].turn != pair[1].turn;
        let changes = entries.windows(2).filter(begins).count() as u64;
        changes + u64::from(!entries.is_empty())
    }
}

/// The client's message and the latest attempt of each turn. A retried turn sees what it saw the first time,
/// and nothing after it. The messages of a turn stay together, even if the next turn was requested before
/// this one was answered.
pub(crate) fn history(state: &State) -> History<'_> {
    let open = state.open.as_ref().and_then(|open| state.turns.position(&open.id));
    let Some(last) = open.or(state.turns.len().checked_sub(1)) else {
        return History::default();
    };
    let entry = |turn: usize, at: usize| {
        #[cfg(test)]
        crate::session::tests::scale::visited();
        HistoryEntry { at, turn, message: &state.messages[at] }
    };
    let summaries = state.compaction.summaries();
    let found = summaries.map(|summary| (summary, summary_position(state, summary, open, last)));
    let found = found.filter_map(|(summary, place)| Some((summary, place?))).next();
    let (first, skipped) = match &found {
        Some((_, place)) => (place.turn, place.nth + 1),
        None => (state.first_read.min(last), 0),
    };
    let of_turn = |n: usize| {
        let skipped = if n == first { skipped } else { 0 };
        let reads = move |at: &&usize| **at >= state.forgotten || open == Some(n);
        state.turns[n].read[skipped..].iter().filter(reads).map(move |at| entry(n, *at))
    };
    let covered = found.as_ref().is_some_and(|(_, place)| open == Some(place.turn));
    let request = open.filter(|_| covered).map(|n| entry(n, state.turns[n].message_at));
    History {
        request: request.filter(|entry| entry.message.role != Role::System),
        summary: found.map(|(summary, _)| summary),
        recent: (first..=last).flat_map(of_turn).collect(),
    }
}

/// The messages from an index on that the next prompt contains, newest turn first. The cost is
/// proportional to the number of new messages.
pub(crate) fn history_since(state: &State, place: usize) -> impl Iterator<Item = HistoryEntry<'_>> {
    let open = state.open.as_ref().and_then(|open| state.turns.position(&open.id));
    let turns = open.map_or(state.turns.len(), |open| open + 1);
    // The message of a queued turn is older than the results of the turns before it.
    let has_new = move |n: &usize| {
        *n + 1 == turns || state.turns[*n].read.last().is_some_and(|at| *at >= place)
    };
    (0..turns).rev().take_while(has_new).flat_map(move |turn| {
        let new = state.turns[turn].read.iter().rev().take_while(move |at| **at >= place);
        new.map(move |at| HistoryEntry { at: *at, turn, message: &state.messages[*at] })
    })
}

/// The position of a message among those that models read.
struct SummaryPosition {
    turn: usize,
    /// The number in the turn.
    nth: usize,
}

/// Where a summary ends, if it may be used: the message of the open turn is never left to a
/// summary.
fn summary_position(
    state: &State,
    summary: &HistorySummary,
    open: Option<usize>,
    last: usize,
) -> Option<SummaryPosition> {
    let message = state.messages.get(summary.at)?;
    let turn = state.turns.position(&message.turn).filter(|turn| *turn <= last)?;
    let nth = state.turns[turn].read.binary_search(&summary.at).ok()?;
    let reads = if open == Some(turn) {
        summary.at != state.turns[turn].message_at
    } else {
        summary.at >= state.forgotten
    };
    reads.then_some(SummaryPosition { turn, nth })
}
