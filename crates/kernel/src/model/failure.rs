//! Why a model call came to nothing.

use serde::{Deserialize, Serialize};

/// Why a model call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of trouble, for programs.
    pub kind: FailureKind,
    /// What happened, for people.
    pub message: String,
}

/// Kinds of trouble, by what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The provider asks for patience (429), and the tries are used up.
    RateLimited,
    /// The provider is down or cannot be reached, and the tries are used up.
    Unavailable,
    /// The key is wrong or may not do this.
    Unauthorized,
    /// No such model.
    UnknownModel,
    /// The prompt is longer than the model can read.
    ContextOverflow,
    /// The provider does not take the request.
    Rejected,
    /// The stream broke off in the middle.
    Cut,
    /// The stream fell silent.
    Stalled,
    /// What came back makes no sense.
    Malformed,
    /// The prompt has media that the model does not take.
    UnsupportedInput,
    /// The provider will not answer this, and said nothing else.
    Refused,
}

impl FailureKind {
    /// The word for it.
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
