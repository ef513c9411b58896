//! A run: a task for a worker of a fleet, from the queue to its end.
//!
//! A run is an aggregate like a session. [`decide()`] turns a command into an event
//! or a refusal, [`evolve()`] applies the event, and [`handle`] does both. The journal of a run is the source of
//! truth; [`RunProgress`] is computed from it and small, so stores keep it next to the journal.

mod command;
mod decide;
mod event;
mod evolve;
mod refusal;
mod state;

pub use command::{NewRun, Reporter, RunCommand, RunEnd, RunReport};
pub use decide::{begin, decide};
pub use event::{RunEvent, RunRecord, decode_event, encode_event};
pub use evolve::{evolve, replay};
pub use refusal::RunRefusal;
pub use state::{
    Control, ControlAction, ControlMode, RunDetails, RunFile, RunProgress, RunState, RunStatus,
    Worker, WorkerBinding,
};

use crate::stamp::Stamp;

/// Executes a command in memory; `None` if it changes nothing. The record must be stored before it
/// is published; if that fails, `state` is invalid and must be loaded again.
pub fn handle(
    state: &mut RunState,
    command: RunCommand,
    stamp: &Stamp,
) -> Result<Option<RunRecord>, RunRefusal> {
    let Some(event) = decide(state, command, stamp)? else { return Ok(None) };
    let record = RunRecord { seq: state.progress.head + 1, at: stamp.at, event };
    evolve(state, &record);
    Ok(Some(record))
}

#[cfg(test)]
mod tests;
