//! Runs of the fleet's workers, as the page shows them.

use quintet_kernel::port::{RunEntry, RunError, RunFilter, Runs};
use serde_json::{Value, json};

use super::decode::Reply;

/// The number of runs that the page shows; older ones are left out.
const LIST_LIMIT: usize = 100;

/// The newest runs.
pub(super) async fn list(runs: &dyn Runs) -> Result<Vec<Value>, RunError> {
    let entries = runs.list(RunFilter::default(), LIST_LIMIT).await?;
    Ok(entries.iter().map(shape).collect())
}

/// A run and the last heartbeat of its worker.
pub(super) fn shape(entry: &RunEntry) -> Value {
    let (run, progress) = (&entry.run, &entry.run.progress);
    json!({
        "id": run.id.as_str(),
        "workspace": run.brief.workspace,
        "task": run.brief.query,
        "status": progress.status.name(),
        "active": progress.status.is_active(),
        "mode": progress.mode.name(),
        "worker": progress.worker(),
        "losses": progress.losses,
        "heartbeat": entry.heartbeat.map(|at| at.micros()),
        "updated": progress.updated.micros(),
    })
}

/// The status and message for a refused command on runs.
pub(super) fn refusal(error: &RunError) -> Reply {
    let status = match error {
        RunError::NotFound(_) => 404,
        RunError::Refused(_) => 409,
        RunError::Storage(_) => 503,
    };
    Reply::new(status, error.to_string())
}
