//! Decides what a run does with a command.
//!
//! Pure: time and fresh ids arrive in [`Stamp`]. An ended run does not change: late reports are kept
//! in its journal, up to a limit, and have no other effect.

use crate::event::Seq;
use crate::id::{ControlId, RunId};
use crate::nesting;
use crate::run::command::{NewRun, Reporter, RunCommand, RunEnd, RunReport};
use crate::run::event::RunEvent;
use crate::run::refusal::RunRefusal;
use crate::run::state::{
    Control, ControlAction, RunDetails, RunProgress, RunState, RunStatus, Worker, WorkerBinding,
};
use crate::stamp::Stamp;

/// Maximum number of events of a run.
const EVENTS_LIMIT: Seq = 1_000_000;
/// Maximum number of events after the end of a run.
const LATE_EVENTS_LIMIT: Seq = 1000;

/// The first event of a run.
pub fn begin(id: &RunId, new: NewRun) -> RunEvent {
    let NewRun { workspace, agent, query, requested_by, files, mut metadata, conversation } = new;
    nesting::cut_values(&mut metadata);
    let conversation = conversation.unwrap_or_else(|| format!("run-{id}"));
    RunEvent::Created(RunDetails {
        workspace,
        agent,
        query,
        requested_by,
        files,
        metadata,
        conversation,
    })
}

/// The event that a command leads to; `None` if nothing changes.
pub fn decide(
    state: &RunState,
    command: RunCommand,
    stamp: &Stamp,
) -> Result<Option<RunEvent>, RunRefusal> {
    let run = &state.progress;
    if run.head >= EVENTS_LIMIT && !ends(&command) {
        return Err(RunRefusal::TooManyEvents);
    }
    match command {
        RunCommand::Assign { mut worker } => {
            nesting::cut_values(&mut worker.metadata);
            assign(run, worker).map(Some)
        }
        RunCommand::Dispatch { by, user, turn, conversation } => {
            dispatch(run, &by, Dispatch { user, turn, conversation })
        }
        RunCommand::Control { action, requested_by, bulk } => {
            unfinished(run)?;
            let control = Control { id: stamp.uuid(), action, requested_by, at: stamp.at };
            Ok(Some(controlled(run, control, bulk)))
        }
        RunCommand::Heartbeat { mut worker } => {
            nesting::cut_values(&mut worker.metadata);
            heartbeat(run, worker).map(Some)
        }
        RunCommand::Report(mut report) => {
            nesting::cut_values(&mut report.payload);
            reported(run, report)
        }
        RunCommand::Expire { heartbeat, grace, most_losses } => {
            let Some(binding) = run.binding.as_ref().filter(|_| run.is_leased()) else {
                return Ok(None);
            };
            let seen = run.heartbeat.map_or(heartbeat, |event| event.max(heartbeat));
            if stamp.at < seen.after(grace) {
                return Ok(None);
            }
            Ok(Some(lost(run, binding, most_losses)))
        }
    }
}

/// True for commands that must be accepted however long the run is.
fn ends(command: &RunCommand) -> bool {
    match command {
        RunCommand::Control { action, .. } => *action == ControlAction::Stop,
        RunCommand::Report(report) => report.end.is_some(),
        RunCommand::Expire { .. } => true,
        RunCommand::Assign { .. } | RunCommand::Dispatch { .. } | RunCommand::Heartbeat { .. } => {
            false
        }
    }
}

fn unfinished(run: &RunProgress) -> Result<(), RunRefusal> {
    if run.status.is_active() { Ok(()) } else { Err(RunRefusal::Finished(run.status)) }
}

fn assign(run: &RunProgress, worker: Worker) -> Result<RunEvent, RunRefusal> {
    unfinished(run)?;
    if !run.is_waiting() {
        return Err(RunRefusal::NotWaiting);
    }
    Ok(RunEvent::Assigned { worker, assignment: run.assignments + 1 })
}

struct Dispatch {
    user: String,
    turn: String,
    conversation: Option<String>,
}

fn dispatch(
    run: &RunProgress,
    by: &Reporter,
    Dispatch { user, turn, conversation }: Dispatch,
) -> Result<Option<RunEvent>, RunRefusal> {
    let binding = bound_to(run, by)?;
    if binding.worker.user.as_ref().is_some_and(|bound| *bound != user) {
        return Err(RunRefusal::Mismatch);
    }
    unfinished(run)?;
    if run.turn.as_ref() == Some(&turn) {
        return Ok(None);
    }
    // A run that was paused before its worker began stays paused; the worker is sent the command.
    let status = if run.status == RunStatus::Paused { run.status } else { RunStatus::Running };
    let conversation = conversation.unwrap_or_else(|| run.conversation.clone());
    let worker = by.worker.clone();
    Ok(Some(RunEvent::Dispatched { worker, user, turn, conversation, status }))
}

fn bound_to<'a>(run: &'a RunProgress, by: &Reporter) -> Result<&'a WorkerBinding, RunRefusal> {
    let binding = run.binding.as_ref().ok_or(RunRefusal::Mismatch)?;
    let same = binding.worker.id == by.worker
        && by.assignment.is_none_or(|assignment| assignment == binding.assignment);
    if same { Ok(binding) } else { Err(RunRefusal::Mismatch) }
}

fn controlled(run: &RunProgress, control: Control, bulk: bool) -> RunEvent {
    let status = match control.action {
        ControlAction::Pause => RunStatus::Paused,
        ControlAction::Resume if run.binding.is_some() => RunStatus::Running,
        ControlAction::Resume => RunStatus::AwaitingWorker,
        ControlAction::Stop => RunStatus::Stopped,
        ControlAction::SetMode(_) => run.status,
    };
    let mode = control.action.mode().unwrap_or(run.mode);
    RunEvent::Controlled { control, status, mode, bulk }
}

fn heartbeat(run: &RunProgress, mut worker: Worker) -> Result<RunEvent, RunRefusal> {
    unfinished(run)?;
    let assignment = match &run.binding {
        Some(binding) if binding.worker.id == worker.id => {
            worker.user = worker.user.or_else(|| binding.worker.user.clone());
            binding.assignment
        }
        Some(_) => return Err(RunRefusal::Mismatch),
        // A run that lost its worker is reassigned by the queue, not claimed by a late worker.
        None if run.losses > 0 => return Err(RunRefusal::Mismatch),
        None => run.assignments + 1,
    };
    let begins = matches!(run.status, RunStatus::AwaitingWorker | RunStatus::Queued);
    let status = if begins && worker.is_ready() { RunStatus::Running } else { run.status };
    Ok(RunEvent::Heartbeat { worker, assignment, status })
}

fn reported(run: &RunProgress, report: RunReport) -> Result<Option<RunEvent>, RunRefusal> {
    let RunReport { kind, source, payload, end, applied, by, turn, key } = report;
    reported_by(run, by.as_ref(), turn.as_deref())?;
    if key.is_some() && key == run.last_report {
        return Ok(None);
    }
    let status = after_report(run, end)?;
    let applied = took_effect(run, applied, end);
    Ok(Some(RunEvent::Reported { kind, source, payload, status, applied, key }))
}

/// Refuses reports of a worker that lost the run. Workers that do not identify themselves name the turn;
/// without either, a report is accepted only if the run has never lost a worker.
fn reported_by(
    run: &RunProgress,
    by: Option<&Reporter>,
    turn: Option<&str>,
) -> Result<(), RunRefusal> {
    if turn.is_some_and(|turn| run.lost_turns.iter().any(|lost| lost == turn)) {
        return Err(RunRefusal::Mismatch);
    }
    match by {
        Some(by) => bound_to(run, by).map(|_| ()),
        None if run.binding.is_none() && run.losses > 0 => Err(RunRefusal::Mismatch),
        None => Ok(()),
    }
}

/// The commands that took effect: those that the worker names and, with the end, all of them.
fn took_effect(
    run: &RunProgress,
    mut named: Vec<ControlId>,
    end: Option<RunEnd>,
) -> Vec<ControlId> {
    if end.is_some() {
        return run.controls.iter().map(|control| control.id.clone()).collect();
    }
    named.retain(|id| run.controls.iter().any(|control| control.id == *id));
    named
}

fn after_report(run: &RunProgress, end: Option<RunEnd>) -> Result<RunStatus, RunRefusal> {
    if let Some(finished) = run.finished {
        let late = run.head - finished;
        let room = late < LATE_EVENTS_LIMIT;
        return if room { Ok(run.status) } else { Err(RunRefusal::Finished(run.status)) };
    }
    Ok(match end {
        Some(RunEnd::Completed) => RunStatus::Completed,
        Some(RunEnd::Failed) => RunStatus::Failed,
        None if matches!(run.status, RunStatus::AwaitingWorker | RunStatus::Queued) => {
            RunStatus::Running
        }
        None => run.status,
    })
}

fn lost(run: &RunProgress, binding: &WorkerBinding, most_losses: u32) -> RunEvent {
    let losses = run.losses.saturating_add(1);
    let fails = losses >= most_losses;
    let status = match run.status {
        RunStatus::AwaitingWorker | RunStatus::Queued | RunStatus::Running | RunStatus::Paused
            if fails =>
        {
            RunStatus::Failed
        }
        RunStatus::Paused => RunStatus::Paused,
        RunStatus::AwaitingWorker | RunStatus::Queued | RunStatus::Running => {
            RunStatus::AwaitingWorker
        }
        RunStatus::Stopped | RunStatus::Completed | RunStatus::Failed => run.status,
    };
    let (worker, assignment) = (binding.worker.id.clone(), binding.assignment);
    RunEvent::Lost { worker, assignment, losses, status }
}
