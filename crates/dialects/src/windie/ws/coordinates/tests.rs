//! How calls say where, and what is left of a message when places are not found.

use quintet_kernel::Time;

use super::*;
use crate::windie::encode::turn_frames::Hands;

fn call(id: &str) -> CallId {
    CallId::parse(id).unwrap()
}

#[test]
fn a_place_is_given_or_says_how_it_is_found() {
    let check = |arguments: Value, then: Result<Option<PlaceQuery>, &str>| {
        let then = then.map_err(String::from);
        assert_eq!(wanted(&arguments, &PLACES[0]), then, "{arguments}");
    };
    check(json!({ "x": 1, "y": 2 }), Ok(None));
    check(json!({ "find_coordinates_by": "manual", "ocr_text": "Save" }), Ok(None));
    let text = json!({ "find_coordinates_by": "ocr", "ocr_text": " Save " });
    check(text, Ok(Some(PlaceQuery::Text("Save".into()))));
    let both = json!({ "find_coordinates_by": "ocr", "ocr_text": "Save", "candidate_id": "ocr_1" });
    check(both, Ok(Some(PlaceQuery::Candidate("ocr_1".into()))));
    let why = "ocr_text or candidate_id is required when find_coordinates_by is ocr";
    check(json!({ "find_coordinates_by": "ocr", "ocr_text": " " }), Err(why));
    let seen = json!({ "find_coordinates_by": "prediction", "source_description": "a bin" });
    check(seen, Ok(Some(PlaceQuery::Description("a bin".into()))));
    let why = "source_description is required when find_coordinates_by is prediction";
    check(json!({ "find_coordinates_by": "prediction" }), Err(why));
    let drag = json!({ "drag_to_find_coordinates_by": "ocr", "drag_to_ocr_text": "Bin" });
    assert_eq!(wanted(&drag, &PLACES[1]), Ok(Some(PlaceQuery::Text("Bin".into()))));
}

#[test]
fn the_calls_of_a_message_are_found() {
    let mut one = json!({ "payload": {
        "tool_call_id": "c1", "tool_name": "mouse_control", "parameters": { "x": 1 },
    } });
    let steps_of_one: Vec<(String, String)> =
        steps(&mut one).iter().map(|step| (step.call.to_string(), step.tool.clone())).collect();
    assert_eq!(steps_of_one, [("c1".into(), "mouse_control".into())]);
    let mut two = json!({ "payload": { "bundle_id": "b", "tools": [
        { "name": "wait", "args": {}, "tool_call_id": "c1" },
        { "name": "mouse_control", "args": {}, "tool_call_id": "c2" },
        { "name": 7 },
    ] } });
    assert_eq!(steps(&mut two).len(), 2);
    for mut other in [json!({}), json!(null), json!({ "payload": { "text": "hi" } })] {
        assert!(steps(&mut other).is_empty());
    }
}

#[test]
fn a_message_with_one_call_stays_what_it_is() {
    let message = json!({ "payload": { "tool_name": "wait", "tool_call_id": "c1" } });
    let mut frame = Frame {
        turn: "t".into(),
        text: "before".into(),
        ends: None,
        hands: Some(Box::new(Hands { calls: vec![call("c1")], shown: "shown".into() })),
    };
    leave_out(&mut frame, message.clone(), &[]);
    assert_eq!(frame.text, message.to_string());
}

#[test]
fn calls_that_are_over_are_not_handed_over() {
    let message = json!({ "payload": { "tools": [
        { "name": "wait", "args": {}, "tool_call_id": "c1" },
        { "name": "mouse_control", "args": {}, "tool_call_id": "c2" },
    ] } });
    let frame = || Frame {
        turn: "t".into(),
        text: message.to_string(),
        ends: None::<Time>,
        hands: Some(Box::new(Hands { calls: vec![call("c1"), call("c2")], shown: "shown".into() })),
    };
    let mut some = frame();
    leave_out(&mut some, message.clone(), &[(call("c2"), Outcome::failure("x"))]);
    let left: Value = serde_json::from_str(&some.text).unwrap();
    assert_eq!(left["payload"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(some.hands.unwrap().calls, [call("c1")]);
    let mut none = frame();
    let failed = [(call("c1"), Outcome::failure("x")), (call("c2"), Outcome::failure("x"))];
    leave_out(&mut none, message.clone(), &failed);
    assert_eq!((none.text.as_str(), none.hands), ("shown", None));
}
