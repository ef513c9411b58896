//! Which words of a failure reach a client.

use super::*;

#[test]
fn only_what_a_client_can_put_right_is_passed_on() {
    assert_eq!(sanitized("temperature is INVALID"), "temperature is INVALID");
    assert_eq!(sanitized("field required"), "field required");
    assert_eq!(sanitized("panic at 10.0.0.7: key sk-1"), INTERNAL);
    let unpaid = crate::windie::user_keys::unusable_key("users.key holds no key; delete it");
    assert_eq!(sanitized(&unpaid), unpaid);
    let malformed = FailureCode::Model(FailureKind::Malformed);
    assert_eq!(payload(malformed, "socket /run/x")["message"], INTERNAL);
}

#[test]
fn a_provider_that_answered_is_quoted() {
    let told = |kind, message: &str| payload(FailureCode::Model(kind), message)["message"].clone();
    assert_eq!(
        told(FailureKind::Rejected, "temperature must be at most 1"),
        "The model's provider did not take the request. It says: temperature must be at most 1"
    );
    let unreachable = told(FailureKind::Unavailable, "connect to 10.0.0.7");
    assert_eq!(unreachable, "The model's provider cannot be reached. Please try again later.");
    let unpaid = told(FailureKind::Unauthorized, "Incorrect API key provided: sk-1");
    assert_eq!(unpaid, "The model's provider does not accept the API key.");
    let long = told(FailureKind::Refused, &"é".repeat(10_000));
    assert!(long.as_str().unwrap().chars().count() < 600);
}

#[test]
fn the_cores_own_words_are_passed_on() {
    let told = payload(FailureCode::StepLimit, "max turn iterations reached");
    assert_eq!(told, json!({ "message": "max turn iterations reached" }));
}
