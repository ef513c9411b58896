//! Failures of model calls.

use serde::{Deserialize, Serialize};

/// Why a model call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure, for programs.
    pub kind: FailureKind,
    /// What happened, for people.
    pub message: String,
}

/// Kinds of failures, by what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The provider's rate limit (429) was exceeded, and all retries failed.
    RateLimited,
    /// The provider is down or cannot be reached, and all retries failed.
    Unavailable,
    /// The API key is wrong or lacks permission.
    Unauthorized,
    /// The provider does not have the model.
    UnknownModel,
    /// The prompt exceeds the context window.
    ContextOverflow,
    /// The provider rejected the request.
    Rejected,
    /// The stream was cut off.
    Cut,
    /// The stream stopped without an end.
    Stalled,
    /// The response cannot be parsed.
    Malformed,
    /// The prompt has media that the model does not support.
    UnsupportedInput,
    /// The provider refused to respond.
    Refused,
}

impl FailureKind {
    /// The name used in protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::Unauthorized => "unauthorized",
            Self::UnknownModel => "unknown_model",
            Self::ContextOverflow => "context_overflow",
            Self::Rejected => "rejected",
            Self::Cut => "stream_cut",
            Self::Stalled => "stream_stalled",
            Self::Malformed => "malformed_answer",
            Self::UnsupportedInput => "unsupported_input",
            Self::Refused => "content_refused",
        }
    }
}
