//! The turn that an event belongs to, and what ends with an event.

use super::Event;
use crate::id::TurnId;

/// What ends with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<'a> {
    /// A model call, successful or not.
    Step,
    /// A turn, successful or not.
    Turn(&'a TurnId),
    /// An attempt to revert or reapply the file changes of this turn.
    Revert(&'a TurnId),
}

impl Event {
    /// What ends with this event, if anything.
    pub fn ended(&self) -> Option<Ended<'_>> {
        match self {
            Event::ModelCompleted { .. } | Event::StepInterrupted { .. } => Some(Ended::Step),
            Event::TurnCompleted { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::TurnCancelled { turn, .. } => Some(Ended::Turn(turn)),
            Event::Reverted { turn, .. } | Event::RevertFailed { turn, .. } => {
                Some(Ended::Revert(turn))
            }
            Event::SessionCreated(_)
            | Event::Forked { .. }
            | Event::Labelled { .. }
            | Event::ModelSwitched { .. }
            | Event::Instructed { .. }
            | Event::Moved { .. }
            | Event::Forgotten { .. }
            | Event::Superseded { .. }
            | Event::ToolsChosen(_)
            | Event::AttachmentAdded(_)
            | Event::MessageAdded { .. }
            | Event::TurnStarted { .. }
            | Event::ContextGathered { .. }
            | Event::StepStarted { .. }
            | Event::TextAppended { .. }
            | Event::ModelRetrying { .. }
            | Event::VerificationRequested { .. }
            | Event::ReviewRequested { .. }
            | Event::Reviewed { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalAnswered { .. }
            | Event::CallStarted { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered { .. }
            | Event::CallClaimed { .. }
            | Event::ClaimHolderLost { .. }
            | Event::ClaimReleased { .. }
            | Event::CallCompleted { .. }
            | Event::Subagent { .. }
            | Event::StopRequested { .. }
            | Event::TurnResumed { .. }
            | Event::TurnHeld { .. }
            | Event::TurnReleased { .. }
            | Event::RevertRequested { .. }
            | Event::CompactionRequested { .. }
            | Event::Compacted { .. }
            | Event::CompactionFailed { .. }
            | Event::MemorySaved { .. }
            | Event::MemoryNotSaved { .. }
            | Event::SessionClosed { .. } => None,
        }
    }

    /// The turn of this event; `None` for events of the whole session.
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
            | Event::QuestionAsked { turn, .. }
            | Event::QuestionAnswered { turn, .. }
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
            | Event::Superseded { .. }
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
