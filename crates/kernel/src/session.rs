//! A session: [`decide()`] turns a command into events, [`evolve()`] applies them, [`next()`] names
//! the work to do.
//!
//! [`handle`] combines the three: it decides, applies, and lets the session take every step
//! that follows, so that one command leads to one batch of events.

mod add_message;
mod advance;
mod attach;
mod call_decision;
mod claims;
mod client_tools;
mod compaction;
mod decide;
mod evolve;
mod import_messages;
mod models;
mod next;
mod questions;
mod recover;
mod refusal;
mod state;
mod subagents;
mod supersede;
mod turn;
mod turns;

use std::sync::Arc;

use crate::command::Command;
use crate::event::{Event, Record};
use crate::stamp::Stamp;

pub use advance::APPROVAL_TIMED_OUT;
pub use decide::decide;
pub use evolve::evolve;
pub use next::{Effect, next};
pub use questions::OpenQuestion;
pub use refusal::Refusal;
pub use state::{
    CallMatcher, Compaction, HistorySummary, PendingMemory, RememberedDecision, SessionData, State,
    SubagentApproval,
};
pub use subagents::{Subagent, SubagentList};
pub use turn::{Call, CallPhase, OpenStep, OpenTurn, Phase, Segment, Turn, TurnStatus};
pub use turns::TurnList;

/// Executes a command in memory. The records must be stored before they are published; if that
/// fails, `state` is invalid and must be loaded again.
///
/// Fails with a [`Refusal`] if the session does not accept the command; `state` is unchanged
/// then.
pub fn handle(
    state: &mut State,
    command: Command,
    stamp: &Stamp,
) -> Result<Vec<Arc<Record>>, Refusal> {
    let mut records = Vec::new();
    let mut events = decide(state, command, stamp)?;
    loop {
        apply_events(state, events, stamp, &mut records);
        events = advance::advance(state, stamp);
        if events.is_empty() {
            return Ok(records);
        }
    }
}

fn apply_events(
    state: &mut State,
    events: Vec<Event>,
    stamp: &Stamp,
    records: &mut Vec<Arc<Record>>,
) {
    for event in events {
        let record = Record { seq: state.head + 1, at: stamp.at, event };
        evolve(state, &record);
        records.push(Arc::new(record));
    }
}

#[cfg(test)]
pub(crate) mod tests;
