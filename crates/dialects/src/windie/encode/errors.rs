//! What a client is told of a turn that failed: enough to act on, nothing of the inside.

use quintet_kernel::event::FailureCode;
use quintet_kernel::model::FailureKind;
use serde_json::{Value, json};

use crate::windie::user_keys::NOBODY_PAYS;

/// What is said of what nobody outside should know more of.
const INTERNAL: &str = "An internal error occurred. Please try again.";
/// Words of which one stands in every message about what a client can put right.
const ABOUT_INPUT: [&str; 6] =
    ["invalid", "required", "missing", "expected", "not found", "not allowed"];

/// The payload of an error.
pub(crate) fn payload(code: FailureCode, message: &str) -> Value {
    json!({ "message": told(code, message), "metadata": { "code": code.name() } })
}

/// A message from the inside as far as it may be seen.
pub(crate) fn sanitized(message: &str) -> &str {
    let lower = message.to_lowercase();
    let about_input = ABOUT_INPUT.iter().any(|word| lower.contains(word));
    if about_input || message.contains(NOBODY_PAYS) { message } else { INTERNAL }
}

fn told(code: FailureCode, message: &str) -> &str {
    match code {
        FailureCode::Model(kind) => of_model(kind, message),
        // These are the core's own words.
        FailureCode::Denied
        | FailureCode::StepLimit
        | FailureCode::TokenLimit
        | FailureCode::TimeLimit
        | FailureCode::Loop
        | FailureCode::Unverified
        | FailureCode::Interrupted => message,
    }
}

fn of_model(kind: FailureKind, message: &str) -> &str {
    match kind {
        FailureKind::RateLimited => {
            "The model's provider asks for patience. Please try again later."
        }
        FailureKind::Unavailable => {
            "The model's provider cannot be reached. Please try again later."
        }
        FailureKind::Unauthorized => "The model's provider does not accept the API key.",
        FailureKind::UnknownModel => "The selected model was not found.",
        FailureKind::ContextOverflow => "The conversation is longer than the model can read.",
        FailureKind::UnsupportedInput => "The model does not take what was attached.",
        FailureKind::Refused => "The model will not answer this.",
        FailureKind::Cut | FailureKind::Stalled => "The model's answer broke off.",
        FailureKind::Rejected | FailureKind::Malformed => sanitized(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_client_can_put_right_is_passed_on() {
        assert_eq!(sanitized("temperature is INVALID"), "temperature is INVALID");
        assert_eq!(sanitized("field required"), "field required");
        assert_eq!(sanitized("panic at 10.0.0.7: key sk-1"), INTERNAL);
        let unpaid = crate::windie::user_keys::nobody_pays("users.key holds no key; delete it");
        assert_eq!(sanitized(&unpaid), unpaid);
        let rejected = FailureCode::Model(FailureKind::Rejected);
        assert_eq!(payload(rejected, "socket /run/x")["message"], INTERNAL);
        assert_eq!(payload(rejected, "model not found")["message"], "model not found");
    }

    #[test]
    fn the_cores_own_words_are_passed_on() {
        let told = payload(FailureCode::StepLimit, "max turn iterations reached");
        assert_eq!(told["message"], "max turn iterations reached");
        assert_eq!(told["metadata"]["code"], "step_limit");
    }
}
