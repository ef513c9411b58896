//! HTTP statuses for errors of the core.

use quintet_kernel::Refusal;
use quintet_kernel::port::Error;

/// The default status for an error; protocols may differ.
pub(crate) fn of(error: &Error) -> u16 {
    match error {
        Error::NotFound(_) => 404,
        Error::Refused(refusal) => match refusal {
            Refusal::NotBegun(_) | Refusal::UnknownTurn(_) | Refusal::UnknownCall(_) => 404,
            Refusal::Busy(_)
            | Refusal::Exists(_)
            | Refusal::Succeeded(_)
            | Refusal::NothingToRevert(_)
            | Refusal::AlreadyReverted(_)
            | Refusal::NotReverted(_)
            | Refusal::CallOver(_)
            | Refusal::NotDelegated(_)
            | Refusal::Claimed(_)
            | Refusal::NothingPending(_)
            | Refusal::NotPending(_)
            | Refusal::QuestionClosed(_)
            | Refusal::KeyReused(_) => 409,
            Refusal::WrongTurn { .. }
            | Refusal::InvalidAnswer(_)
            | Refusal::EmptyMessage
            | Refusal::UnknownAttachment(_)
            | Refusal::BadName
            | Refusal::BadTools(_)
            | Refusal::UnsupportedInput { .. }
            | Refusal::UnknownModel(_)
            | Refusal::NothingToCompact => 400,
        },
        Error::Ahead(..) => 400,
        Error::Closing | Error::ReadOnly => 503,
        Error::Storage(_) => 500,
    }
}
