//! The messages for failed turns: enough to act on, without internals.

use quintet_kernel::event::FailureCode;
use quintet_kernel::model::FailureKind;
use serde_json::{Value, json};

use crate::windie::user_keys::UNUSABLE_KEY;

/// The message for errors whose details are internal.
const INTERNAL: &str = "An internal error occurred. Please try again.";
/// The longest text of a provider that is passed on, in characters.
const REASON_LIMIT: usize = 500;
/// Words that occur in messages about input that the client can correct.
const ABOUT_INPUT: [&str; 6] =
    ["invalid", "required", "missing", "expected", "not found", "not allowed"];

/// The payload for a failed turn.
pub(crate) fn payload(code: FailureCode, message: &str) -> Value {
    let message = match code {
        FailureCode::Model(kind) => of_model(kind, message),
        // These messages are the core's own.
        FailureCode::Denied
        | FailureCode::StepLimit
        | FailureCode::TokenLimit
        | FailureCode::TimeLimit
        | FailureCode::Loop
        | FailureCode::Unverified
        | FailureCode::Interrupted => message.into(),
    };
    json!({ "message": message })
}

/// An internal message, if clients may see it.
pub(crate) fn sanitized(message: &str) -> &str {
    let lower = message.to_lowercase();
    let about_input = ABOUT_INPUT.iter().any(|word| lower.contains(word));
    if about_input || message.contains(UNUSABLE_KEY) { message } else { INTERNAL }
}

/// The message for a failed model call. The text of a provider that answered is passed on; other messages
/// are about the network or contain the key.
fn of_model(kind: FailureKind, message: &str) -> String {
    let (summary, answered) = match kind {
        FailureKind::RateLimited => {
            ("The model's provider asks for patience. Please try again later.", true)
        }
        FailureKind::Unavailable => {
            ("The model's provider cannot be reached. Please try again later.", false)
        }
        FailureKind::Unauthorized => ("The model's provider does not accept the API key.", false),
        FailureKind::UnknownModel => ("The selected model was not found.", true),
        FailureKind::ContextOverflow => {
            ("The conversation is longer than the model can read.", true)
        }
        FailureKind::UnsupportedInput => ("The model does not take what was attached.", true),
        FailureKind::Refused => ("The model will not answer this.", true),
        FailureKind::Cut | FailureKind::Stalled => ("The model's answer broke off.", false),
        FailureKind::Rejected if message.contains(UNUSABLE_KEY) => return message.into(),
        FailureKind::Rejected => ("The model's provider did not take the request.", true),
        FailureKind::Malformed => return sanitized(message).into(),
    };
    let reason: String = message.trim().chars().take(REASON_LIMIT).collect();
    if answered && !reason.is_empty() {
        format!("{summary} It says: {reason}")
    } else {
        summary.into()
    }
}

#[cfg(test)]
mod tests;
