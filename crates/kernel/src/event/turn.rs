//! Which turn an event belongs to.

use super::Event;
use crate::id::TurnId;

impl Event {
    /// The turn that it belongs to; nothing if it is the session's own.
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            Event::MessageAdded { turn, .. }
            | Event::TurnStarted { turn, .. }
            | Event::ContextGathered { turn, .. }
            | Event::StepStarted { turn, .. }
            | Event::TextAppended { turn, .. }
            | Event::ModelRetrying { turn, .. }
            | Event::ModelCompleted { turn, .. }
            | Event::StepInterrupted { turn, .. }
            | Event::VerificationRequested { turn, .. }
            | Event::ReviewRequested { turn, .. }
            | Event::Reviewed { turn, .. }
            | Event::ApprovalRequested { turn, .. }
            | Event::ApprovalAnswered { turn, .. }
            | Event::CallStarted { turn, .. }
            | Event::CallClaimed { turn, .. }
            | Event::ClaimHolderLost { turn, .. }
            | Event::ClaimReleased { turn, .. }
            | Event::CallCompleted { turn, .. }
            | Event::Subagent { turn, .. }
            | Event::StopRequested { turn, .. }
            | Event::RevertRequested { turn }
            | Event::Reverted { turn, .. }
            | Event::RevertFailed { turn, .. }
            | Event::TurnResumed { turn, .. }
            | Event::TurnHeld { turn, .. }
            | Event::TurnReleased { turn }
            | Event::TurnCompleted { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::TurnCancelled { turn, .. } => Some(turn),
            Event::SessionCreated(_)
            | Event::Forked { .. }
            | Event::Labelled { .. }
            | Event::ModelSwitched { .. }
            | Event::Instructed { .. }
            | Event::Moved { .. }
            | Event::Forgotten { .. }
            | Event::ToolsChosen(_)
            | Event::AttachmentAdded(_)
            | Event::CompactionRequested { .. }
            | Event::Compacted { .. }
            | Event::CompactionFailed { .. }
            | Event::MemorySaved { .. }
            | Event::MemoryNotSaved { .. }
            | Event::SessionClosed { .. } => None,
        }
    }
}
