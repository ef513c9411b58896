//! Applies events to runs.

use std::mem::take;
use std::sync::Arc;

use crate::id::RunId;
use crate::run::event::{RunEvent, RunRecord};
use crate::run::state::{Control, ControlAction, RunProgress, RunState, RunStatus, WorkerBinding};

/// Maximum number of unconfirmed commands; beyond it the oldest are dropped, because later ones
/// override them.
const CONTROLS_LIMIT: usize = 64;

/// The run that a journal leads to; `None` if the first event does not create a run.
pub fn replay<'a>(
    id: &RunId,
    records: impl IntoIterator<Item = &'a RunRecord>,
) -> Option<RunState> {
    let mut records = records.into_iter();
    let mut state = RunState::begun(id.clone(), records.next()?)?;
    for record in records {
        evolve(&mut state, record);
    }
    Some(state)
}

impl RunState {
    /// A run after its first event; `None` if that event does not create a run.
    pub fn begun(id: RunId, record: &RunRecord) -> Option<Self> {
        let RunEvent::Created(brief) = &record.event else { return None };
        let progress = RunProgress {
            status: RunStatus::AwaitingWorker,
            mode: Default::default(),
            conversation: brief.conversation.clone(),
            turn: None,
            binding: None,
            assignments: 0,
            losses: 0,
            lost_turns: Vec::new(),
            controls: Vec::new(),
            last_report: None,
            heartbeat: None,
            created: record.at,
            updated: record.at,
            head: record.seq,
            finished: None,
        };
        Some(Self { id, brief: Arc::new(brief.clone()), progress })
    }
}

/// Applies an event.
pub fn evolve(state: &mut RunState, record: &RunRecord) {
    let run = &mut state.progress;
    (run.head, run.updated) = (record.seq, record.at);
    match &record.event {
        // A run is created only once.
        RunEvent::Created(_) => {}
        RunEvent::Assigned { worker, assignment } => {
            run.binding = Some(WorkerBinding { worker: worker.clone(), assignment: *assignment });
            run.assignments = *assignment;
            run.heartbeat = Some(record.at);
            run.controls = effective(take(&mut run.controls));
            // The reports of the new worker start over.
            run.last_report = None;
            set_status(run, RunStatus::Queued);
        }
        RunEvent::Dispatched { turn, conversation, status, .. } => {
            run.turn = Some(turn.clone());
            run.conversation.clone_from(conversation);
            run.heartbeat = Some(record.at);
            set_status(run, *status);
        }
        RunEvent::Controlled { control, status, mode, .. } => {
            run.controls.push(control.clone());
            let excess = run.controls.len().saturating_sub(CONTROLS_LIMIT);
            run.controls.drain(..excess);
            run.mode = *mode;
            set_status(run, *status);
        }
        RunEvent::Heartbeat { worker, assignment, status } => {
            run.binding = Some(WorkerBinding { worker: worker.clone(), assignment: *assignment });
            run.assignments = *assignment;
            run.heartbeat = Some(record.at);
            set_status(run, *status);
        }
        RunEvent::Reported { status, applied, key, .. } => {
            run.controls.retain(|control| !applied.contains(&control.id));
            run.last_report = key.clone().or_else(|| run.last_report.take());
            set_status(run, *status);
        }
        RunEvent::Lost { losses, status, .. } => {
            run.binding = None;
            run.losses = *losses;
            run.lost_turns.extend(run.turn.take());
            set_status(run, *status);
        }
    }
}

/// Sets the status. A run that completed or failed drops its open commands; a `stop` is still sent to the
/// worker.
fn set_status(run: &mut RunProgress, status: RunStatus) {
    run.status = status;
    if status.is_active() {
        return;
    }
    run.finished.get_or_insert(run.head);
    if status != RunStatus::Stopped {
        run.controls.clear();
    }
}

/// The commands that still matter to a worker that starts: the last one on each subject.
fn effective(controls: Vec<Control>) -> Vec<Control> {
    let mut kept: Vec<Control> = Vec::new();
    for control in controls.into_iter().rev() {
        if !kept.iter().any(|later| same_subject(later.action, control.action)) {
            kept.push(control);
        }
    }
    kept.reverse();
    kept
}

fn same_subject(one: ControlAction, other: ControlAction) -> bool {
    one.mode().is_some() == other.mode().is_some()
}
