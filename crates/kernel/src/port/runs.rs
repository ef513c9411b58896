//! Runs for the workers of a fleet: the port that front ends call, and the port that stores
//! implement.

use super::{BoxFuture, Page, StorageError};
use crate::event::Seq;
use crate::id::RunId;
use crate::run::{
    Control, NewRun, RunCommand, RunProgress, RunRecord, RunRefusal, RunState, RunStatus, Worker,
};
use crate::time::Time;

/// A run and the last heartbeat of its worker.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEntry {
    /// The run.
    pub run: RunState,
    /// The last heartbeat of the worker that has the run, to within a quarter of the lease.
    pub heartbeat: Option<Time>,
}

/// The durable result of a command.
#[derive(Clone, Debug)]
pub struct RunReceipt {
    /// The run after the command.
    pub entry: RunEntry,
    /// The last event of the run.
    pub latest: RunRecord,
}

/// The reply to a worker's heartbeat.
#[derive(Clone, Debug, Default)]
pub struct RunPoll {
    /// A run to start.
    pub assigned: Option<RunEntry>,
    /// Commands on the worker's runs whose effect was not reported yet, oldest first.
    pub controls: Vec<(RunId, Control)>,
}

/// The active runs of a worker.
#[derive(Clone, Debug, Default)]
pub struct WorkerRuns {
    /// The oldest heartbeat of the worker's active runs; `None` if it has none.
    pub heartbeat: Option<Time>,
    /// The runs with commands for the worker, oldest first.
    pub commanded: Vec<RunEntry>,
}

/// Selects runs. Fields that are `None` select every run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Runs of a workspace.
    pub workspace: Option<String>,
    /// Runs that a worker has.
    pub worker: Option<String>,
    /// Runs with this status.
    pub status: Option<RunStatus>,
    /// Runs that have not ended.
    pub active: bool,
}

impl RunFilter {
    /// True if the filter selects a run.
    pub fn matches(&self, run: &RunState) -> bool {
        let progress = &run.progress;
        let bound = progress.binding.as_ref().map(|binding| &binding.worker.id);
        self.workspace.as_ref().is_none_or(|workspace| *workspace == run.brief.workspace)
            && self.worker.as_ref().is_none_or(|worker| Some(worker) == bound)
            && self.status.is_none_or(|status| status == progress.status)
            && (!self.active || progress.status.is_active())
    }
}

/// Why a run could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No such run.
    #[error("run not found: {0}")]
    NotFound(RunId),
    /// The command is refused.
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    /// Storage failed.
    #[error("storage: {0}")]
    Storage(#[from] StorageError),
}

/// Inbound: what clients and workers do with runs. Results are durable when the futures resolve.
pub trait Runs: Send + Sync {
    /// Adds a run to the queue of its workspace. Refused if the workspace has too many active runs.
    fn create(&self, new: NewRun) -> BoxFuture<'_, Result<RunReceipt, RunError>>;
    /// Submits a command.
    fn submit(
        &self,
        run: &RunId,
        command: RunCommand,
    ) -> BoxFuture<'_, Result<RunReceipt, RunError>>;
    /// Stops all active runs, or those of one workspace; returns the runs that were stopped.
    fn stop_all(
        &self,
        workspace: Option<String>,
        requested_by: Option<String>,
    ) -> BoxFuture<'_, Result<Vec<RunId>, RunError>>;
    /// A worker's heartbeat: renews the leases of the worker's runs, assigns the oldest waiting run
    /// of the workspace if the worker is ready, and returns the commands for the worker.
    fn poll(&self, workspace: String, worker: Worker) -> BoxFuture<'_, Result<RunPoll, RunError>>;
    /// The current state of a run.
    fn view(&self, run: &RunId) -> BoxFuture<'_, Result<RunEntry, RunError>>;
    /// The events of a run after event `after`.
    fn events(
        &self,
        run: &RunId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<RunRecord>, RunError>>;
    /// The newest runs that a filter selects, newest first.
    fn list(
        &self,
        filter: RunFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, RunError>>;
}

/// Outbound: the journals of all runs, and the queue computed from them.
///
/// Every append names the event that it follows, so that only one of several daemons on one store
/// assigns a run.
pub trait RunJournal: Send + Sync {
    /// Creates a run with its first event, unless its workspace has `most_active` active runs
    /// already; true if it was created. Durable when it resolves.
    fn begin(
        &self,
        run: RunState,
        record: RunRecord,
        most_active: usize,
    ) -> BoxFuture<'_, Result<bool, StorageError>>;
    /// Appends an event; `progress` is the run after it. Fails with a conflict unless the event's
    /// number follows the last one. Durable when it resolves.
    fn append(
        &self,
        run: &RunId,
        record: RunRecord,
        progress: RunProgress,
    ) -> BoxFuture<'_, Result<(), StorageError>>;
    /// Records a heartbeat for every run that a worker has started and, if `all`, also for those
    /// that it has not. Durable when it resolves.
    fn renew(&self, worker: &str, at: Time, all: bool) -> BoxFuture<'_, Result<(), StorageError>>;
    /// One run.
    fn run(&self, run: &RunId) -> BoxFuture<'_, Result<Option<RunEntry>, StorageError>>;
    /// The events of a run after event `after`.
    fn events(
        &self,
        run: &RunId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<RunRecord>, StorageError>>;
    /// The waiting runs of a workspace, oldest first.
    fn waiting(
        &self,
        workspace: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunId>, StorageError>>;
    /// The active runs of a worker.
    fn of_worker(&self, worker: &str) -> BoxFuture<'_, Result<WorkerRuns, StorageError>>;
    /// Active runs of all workspaces or of one, oldest first.
    fn active(&self, workspace: Option<&str>) -> BoxFuture<'_, Result<Vec<RunId>, StorageError>>;
    /// Runs whose worker sent its last heartbeat before a time, oldest first.
    fn silent(
        &self,
        before: Time,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, StorageError>>;
    /// The newest runs that a filter selects, newest first.
    fn list(
        &self,
        filter: RunFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, StorageError>>;
}
