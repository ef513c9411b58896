//! The small answers, and the envelope around them.

use quintet_kernel::model::ModelRef;
use serde_json::{Value, json};

use super::*;

fn sent(answer: &Answer) -> Value {
    serde_json::from_str(&answer.frame(Time::from_micros(0))).unwrap()
}

#[test]
fn what_nobody_asked_for_has_no_id_and_an_error_always_has() {
    let unasked = sent(&Answer::notification("remote-tool-catalog", json!({})));
    assert_eq!(unasked.get("id"), None);
    assert_eq!(unasked.get("conversation_ref"), None);
    let error = sent(&Answer::error(None, "Malformed JSON"));
    assert_eq!(error["payload"], json!({ "message": "Malformed JSON" }));
    assert_eq!(error.get("id"), Some(&Value::Null));
    assert_eq!(sent(&Answer::error(Some("m1"), "no"))["id"], "m1");
}

#[test]
fn settings_are_answered() {
    let loaded =
        sent(&settings_loaded("m1", &Settings::default(), &ModelRef::parse("fake/fake").unwrap()));
    assert_eq!((&loaded["type"], &loaded["id"]), (&json!("settings-loaded"), &json!("m1")));
    assert_eq!(loaded["payload"]["config"]["model_mode"], "online");
    let none = Voice::default();
    let updated = sent(&settings_updated("m2", &["model_mode".into()], &Settings::default(), none));
    assert_eq!(updated["payload"], json!({ "updated_keys": ["model_mode"] }));
    assert!(updated.get("sequence").is_none() && updated.get("event_id").is_none());
}

#[test]
fn a_stop_is_answered_with_what_it_was_about() {
    let about = Context {
        conversation_ref: Some("c1".into()),
        turn_ref: Some("t1".into()),
        ..Context::default()
    };
    let stopped = sent(&stop_ack("m1", true, about));
    let expected = json!({
        "status": "stopped", "canceled": true, "conversation_ref": "c1", "turn_ref": "t1",
    });
    assert_eq!(stopped["payload"], expected);
    assert_eq!(stopped["conversation_ref"], "c1");
    let idle = sent(&stop_ack("m1", false, Context::default()));
    assert_eq!(idle["payload"], json!({ "status": "not-running", "canceled": false }));
}

#[test]
fn who_calls_is_greeted() {
    let [activated, greeting] =
        awake("m1", &Settings::default(), Voice::default()).map(|answer| sent(&answer));
    let words = &activated["payload"]["greeting"];
    assert_eq!(activated["payload"]["status"], "listening");
    assert_eq!(activated["payload"]["speech_mode_enabled"], false);
    assert_eq!(greeting["payload"], json!({ "text": words }));
    assert!(GREETINGS.iter().any(|greeting| words == greeting));
    assert_eq!(GREETINGS[0], "Hello! I'm listening.");
}

#[test]
fn who_wants_to_hear_the_daemon_is_told_that_it_cannot_speak() {
    let none = Voice::default();
    let settings =
        Settings { speech_mode_enabled: true, wakeword_stt_enabled: true, ..Settings::default() };
    let keys = ["speech_mode_enabled".to_owned(), "wakeword_stt_enabled".into()];
    let updated = sent(&settings_updated("m1", &keys, &settings, none));
    let expected = json!({
        "speech_mode_enabled": "Speech service not available",
        "wakeword_stt_enabled": "Transcription service not available",
    });
    assert_eq!(updated["payload"]["unavailable"], expected);
    let [activated, _] = awake("m1", &settings, none).map(|answer| sent(&answer));
    let why = &activated["payload"]["unavailable"]["speech_mode_enabled"];
    assert_eq!(why, "Speech service not available");
    // Who changes something else is not told again.
    let updated = sent(&settings_updated("m1", &["model_mode".into()], &settings, none));
    assert_eq!(updated["payload"].get("unavailable"), None);
    // A client whose voice settings all work gets no list of what does not.
    let all = Voice { speech: true, transcription: true };
    let updated = sent(&settings_updated("m1", &keys, &settings, all));
    assert_eq!(updated["payload"].get("unavailable"), None);
    let [activated, _] = awake("m1", &settings, all).map(|answer| sent(&answer));
    assert_eq!(activated["payload"].get("unavailable"), None);
}
