//! Frames that hand calls over, and what is left of them when calls fail before.

use quintet_kernel::CallId;
use serde_json::{Value, json};

use super::*;

fn pending(id: &str, input: Value) -> PendingCall {
    let call = CallId::parse(id).unwrap();
    PendingCall { call, request: format!("s:{id}"), tool: "mouse_control".into(), input }
}

#[test]
fn calls_that_failed_are_not_handed_over() {
    let mut turn = TurnFrames::new(None, Context::default());
    let both = vec![pending("c1", json!({})), pending("c2", json!({}))];
    let frame = turn.hand(both, Time::default());
    let mut some = frame.clone();
    some.hand_over(vec![pending("c1", json!({ "x": 1 }))]);
    let left: Value = serde_json::from_str(&some.text).unwrap();
    assert_eq!((&left["type"], &left["sequence"]), (&json!("tool-bundle"), &json!(1)));
    let step = json!({ "name": "mouse_control", "args": { "x": 1 }, "tool_call_id": "c1" });
    assert_eq!(left["payload"]["tools"], json!([step]));
    assert_eq!(some.handover.unwrap().calls, [pending("c1", json!({ "x": 1 }))]);
    let mut none = frame;
    none.hand_over(Vec::new());
    let left: Value = serde_json::from_str(&none.text).unwrap();
    assert_eq!((&left["payload"]["tools"], none.handover), (&json!([]), None));
}

#[test]
fn a_single_call_gets_its_new_arguments() {
    let mut turn = TurnFrames::new(None, Context::default());
    let mut frame = turn.hand(vec![pending("c1", json!({ "ocr_text": "Save" }))], Time::default());
    let mut expected: Value = serde_json::from_str(&frame.text).unwrap();
    expected["payload"]["parameters"] = json!({ "x": 1, "y": 2 });
    frame.hand_over(vec![pending("c1", json!({ "x": 1, "y": 2 }))]);
    assert_eq!(frame.text, expected.to_string());
    frame.hand_over(Vec::new());
    let shown: Value = serde_json::from_str(&frame.text).unwrap();
    assert_eq!(shown["payload"]["metadata"]["skip_local_execution"], true);
}
