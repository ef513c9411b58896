//! Which blobs an event refers to.

use super::Event;
use crate::id::BlobId;

impl Event {
    /// The content that must be kept as long as the event: attachments and artifacts. The old content of
    /// changed files is not included: it is kept elsewhere, for undo, and only while there is space.
    pub fn blobs(&self) -> Vec<&BlobId> {
        match self {
            Self::AttachmentAdded(file) => vec![&file.blob],
            Self::CallCompleted { outcome, .. } => {
                outcome.artifacts.iter().map(|file| &file.blob).collect()
            }
            Self::SessionCreated(_)
            | Self::Forked { .. }
            | Self::Labelled { .. }
            | Self::ModelSwitched { .. }
            | Self::Instructed { .. }
            | Self::Moved { .. }
            | Self::Forgotten { .. }
            | Self::Superseded { .. }
            | Self::ToolsChosen(_)
            | Self::MessageAdded { .. }
            | Self::TurnStarted { .. }
            | Self::ContextGathered { .. }
            | Self::StepStarted { .. }
            | Self::TextAppended { .. }
            | Self::ModelRetrying { .. }
            | Self::ModelCompleted { .. }
            | Self::StepInterrupted { .. }
            | Self::VerificationRequested { .. }
            | Self::ReviewRequested { .. }
            | Self::Reviewed { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalAnswered { .. }
            | Self::CallStarted { .. }
            | Self::QuestionAsked { .. }
            | Self::QuestionAnswered { .. }
            | Self::CallClaimed { .. }
            | Self::ClaimHolderLost { .. }
            | Self::ClaimReleased { .. }
            | Self::Subagent { .. }
            | Self::StopRequested { .. }
            | Self::TurnResumed { .. }
            | Self::TurnHeld { .. }
            | Self::TurnReleased { .. }
            | Self::TurnCompleted { .. }
            | Self::TurnFailed { .. }
            | Self::TurnCancelled { .. }
            | Self::RevertRequested { .. }
            | Self::Reverted { .. }
            | Self::RevertFailed { .. }
            | Self::CompactionRequested { .. }
            | Self::Compacted { .. }
            | Self::CompactionFailed { .. }
            | Self::MemorySaved { .. }
            | Self::MemoryNotSaved { .. }
            | Self::SessionClosed { .. } => Vec::new(),
        }
    }
}
