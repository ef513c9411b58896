//! Why a command on a run is refused.

use crate::run::state::RunStatus;

/// Why a command was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunRefusal {
    /// The run has ended.
    #[error("run is already {}", .0.name())]
    Finished(RunStatus),
    /// Another worker has the run, or none.
    #[error("the run has another worker")]
    Mismatch,
    /// The run is not in the queue.
    #[error("the run is not waiting for a worker")]
    NotWaiting,
    /// The run's journal has reached its maximum length.
    #[error("the run has too many events")]
    TooManyEvents,
    /// The workspace has reached its maximum number of active runs.
    #[error("active run limit reached for workspace '{workspace}' ({limit})")]
    TooManyRuns {
        /// The workspace.
        workspace: String,
        /// The limit.
        limit: usize,
    },
}
