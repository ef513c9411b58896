//! How an idle session leaves memory: open files are closed and a snapshot makes the next load
//! fast.

use std::sync::Arc;

use quintet_kernel::snapshot;
use tokio::task::spawn_blocking;

use super::command_loop::{LiveEnd, LiveSession};

impl LiveSession {
    /// Ends an idle session.
    pub(super) async fn hibernate(self) -> LiveEnd {
        let (drafts, id) = (Arc::clone(&self.shared.deps.drafts), self.state.id.clone());
        // A file that cannot be closed does not prevent hibernation.
        let _ = spawn_blocking(move || drafts.release(&id)).await;
        let (shared, lease) = (Arc::clone(&self.shared), self.lease.clone());
        let open_turn = self.state.open.is_some();
        self.keep_snapshot().await;
        shared.give_back(lease, open_turn).await;
        LiveEnd::Idle
    }

    /// Stores a snapshot of a session whose events are all durable, if enough of them are
    /// new. Without it the next load is slower.
    pub(super) async fn keep_snapshot(self) {
        if !snapshot::is_due(self.state.head, self.snapshot) {
            return;
        }
        let (state, lease, shared) = (self.state, self.lease, self.shared);
        let Ok(taken) = spawn_blocking(move || snapshot::take(&state)).await else { return };
        if let Err(error) = shared.deps.journal.keep_snapshot(&lease, taken).await {
            tracing::warn!(session = %lease.session, %error, "could not store a snapshot");
        }
    }
}
