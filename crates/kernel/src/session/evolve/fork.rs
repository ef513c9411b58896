//! Applies the start of a fork: work in progress in the source is not in progress in the fork.

use crate::event::{FailureCode, Seq, StopCause};
use crate::id::SessionId;
use crate::session::SessionData;
use crate::session_summary::{Fork, Status};
use crate::time::Time;

/// Takes a fork into the state, which has all that is shared already.
///
/// A turn that is open at this point ends as interrupted: nothing runs for it here, and what runs
/// there reports there. What waits in the queue is not begun twice either.
pub(super) fn forked(state: &mut SessionData, parent: &SessionId, seq: Seq, at: Time) {
    state.created = Some(at);
    state.forked = Some(Fork { parent: parent.clone(), at: seq });
    state.status = Status::Active;
    state.error = None;
    state.reverting = None;
    state.saving.clear();
    // Those work for the other session.
    state.subagents.clear();
    state.asked.clear();
    // An answer counted for the session in which it was given.
    state.remembered.clear();
    state.turns.cancel_queued(at);
    state.compaction.pending = None;
    if let Some(open) = &mut state.open {
        let message = "the session was forked while this turn was running".into();
        open.held = true;
        open.stopping = Some(StopCause::Failed { code: FailureCode::Interrupted, message });
    }
}
