//! Error replies: a status, a code and a message.

use quintet_kernel::port::Error;
use quintet_kernel::{Refusal, memory};
use serde_json::{Map, Value};

use super::wire;

/// An error response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) message: String,
}

impl Reply {
    pub(super) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into() }
    }

    /// The error for a request that does not match the schema.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "INVALID_REQUEST", message)
    }

    pub(super) fn no_session(id: &str) -> Self {
        Self::new(404, "SESSION_NOT_FOUND", format!("session not found: {id}"))
    }

    pub(super) fn busy() -> Self {
        let why = "the session is answering another message; follow it with GET /v1/stream";
        Self::new(409, "TURN_IN_PROGRESS", why)
    }

    /// The stream cannot continue from the requested position.
    pub(super) fn gone(requested: &str) -> Self {
        let why =
            format!("there is no event {requested:?} in this session; start again without it");
        Self::new(410, "EVENT_ID_GONE", why)
    }

    pub(super) fn body(&self) -> Vec<u8> {
        let details: Option<Map<String, Value>> = Some(Map::new());
        let error = wire::Error { code: &self.code, message: &self.message, details };
        serde_json::to_vec(&wire::ErrorBody { error }).expect("our own types serialize")
    }
}

/// Maps errors of the core to replies.
impl From<Error> for Reply {
    fn from(error: Error) -> Self {
        let (status, code) = match &error {
            Error::NotFound(_) => (404, "SESSION_NOT_FOUND"),
            Error::Refused(refusal) => refusal_code(refusal),
            Error::Ahead(..) => (410, "EVENT_ID_GONE"),
            Error::Closing | Error::ReadOnly => (503, "UNAVAILABLE"),
            Error::Storage(_) => (500, "STORAGE_ERROR"),
        };
        Self::new(status, code, error.to_string())
    }
}

fn refusal_code(refusal: &Refusal) -> (u16, &'static str) {
    match refusal {
        Refusal::Busy(_) => (409, "TURN_IN_PROGRESS"),
        Refusal::NotBegun(_) => (404, "SESSION_NOT_FOUND"),
        Refusal::UnknownTurn(_) => (404, "TURN_NOT_FOUND"),
        Refusal::UnknownCall(_) => (404, "TOOL_CALL_NOT_FOUND"),
        Refusal::CallOver(_) => (409, "TOOL_CALL_COMPLETED"),
        Refusal::NotDelegated(_) | Refusal::Claimed(_) => (409, "TOOL_CALL_NOT_PENDING"),
        Refusal::KeyReused(_) => (409, "IDEMPOTENCY_KEY_REUSED"),
        Refusal::Exists(_)
        | Refusal::Succeeded(_)
        | Refusal::NothingToRevert(_)
        | Refusal::AlreadyReverted(_)
        | Refusal::NotReverted(_)
        | Refusal::NothingPending(_)
        | Refusal::NotPending(_)
        | Refusal::QuestionClosed(_)
        | Refusal::WrongTurn { .. }
        | Refusal::NothingToCompact => (409, "CONFLICT"),
        Refusal::BadTools(_) => (400, "INVALID_TOOLS"),
        Refusal::EmptyMessage
        | Refusal::InvalidAnswer(_)
        | Refusal::UnknownAttachment(_)
        | Refusal::BadName
        | Refusal::UnsupportedInput { .. }
        | Refusal::UnknownModel(_) => (400, "INVALID_REQUEST"),
    }
}

impl From<memory::MemoryError> for Reply {
    fn from(error: memory::MemoryError) -> Self {
        let (status, code) = match &error {
            memory::MemoryError::NotFound(_) => (404, "MEMORY_NOT_FOUND"),
            memory::MemoryError::Outside(_) => (400, "INVALID_PATH"),
            memory::MemoryError::TooLarge { .. } => (413, "PAYLOAD_TOO_LARGE"),
            memory::MemoryError::BadQuery(_) | memory::MemoryError::BadEntry(_) => {
                (400, "INVALID_REQUEST")
            }
            memory::MemoryError::Storage(_) => (500, "STORAGE_ERROR"),
        };
        Self::new(status, code, error.to_string())
    }
}
