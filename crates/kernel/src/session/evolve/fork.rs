//! Applies the start of a fork: work in progress in the source is not in progress in the fork.

use crate::event::{FailureCode, Seq, StopCause};
use crate::id::SessionId;
use crate::session::SessionData;
use crate::session_summary::{Fork, Status};
use crate::time::Time;

/// Applies a fork to a state that already has all shared events.
///
/// A turn that is open at this point ends as interrupted: its work runs in the parent and reports
/// there. Queued turns are not started twice either.
pub(super) fn forked(state: &mut SessionData, parent: &SessionId, seq: Seq, at: Time) {
    state.created = Some(at);
    state.forked = Some(Fork { parent: parent.clone(), at: seq });
    state.status = Status::Active;
    state.error = None;
    state.reverting = None;
    state.saving.clear();
    // Subagents of the parent work for the parent.
    state.subagents.clear();
    state.asked.clear();
    // A remembered decision applies only to the session in which it was made.
    state.remembered.clear();
    state.turns.cancel_queued(at);
    state.compaction.pending = None;
    if let Some(open) = &mut state.open {
        let message = "the session was forked while this turn was running".into();
        open.held = true;
        open.stopping = Some(StopCause::Failed { code: FailureCode::Interrupted, message });
    }
}
