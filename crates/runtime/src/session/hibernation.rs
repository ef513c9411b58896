//! How a live session leaves memory: what it held open is closed, and it is quick to wake again.

use std::sync::Arc;

use quintet_kernel::snapshot;
use tokio::task::spawn_blocking;

use super::command_loop::{LiveEnd, LiveSession};

impl LiveSession {
    /// Ends a session that has nothing to do.
    pub(super) async fn hibernate(self) -> LiveEnd {
        let (drafts, id) = (Arc::clone(&self.shared.deps.drafts), self.state.id.clone());
        // A file that cannot be closed keeps nobody from falling asleep.
        let _ = spawn_blocking(move || drafts.release(&id)).await;
        let (shared, lease) = (Arc::clone(&self.shared), self.lease.clone());
        let open_turn = self.state.open.is_some();
        self.keep_snapshot().await;
        shared.give_back(lease, open_turn).await;
        LiveEnd::Idle
    }

    /// Keeps a snapshot of a session whose events are all durable, if enough of them are new. Without
    /// one the session takes longer to wake, and that is all.
    pub(super) async fn keep_snapshot(self) {
        if !snapshot::is_due(self.state.head, self.snapshot) {
            return;
        }
        let (state, lease, shared) = (self.state, self.lease, self.shared);
        let Ok(taken) = spawn_blocking(move || snapshot::take(&state)).await else { return };
        if let Err(error) = shared.deps.journal.keep_snapshot(&lease, taken).await {
            tracing::warn!(session = %lease.session, %error, "no snapshot was kept");
        }
    }
}
