//! Valid and invalid arguments, and the reported errors.

use serde_json::json;

use super::*;

fn schema() -> Schema {
    let edit = json!({
        "type": "object",
        "properties": { "old": { "type": "string" }, "times": { "type": "integer" } },
        "required": ["old"],
        "additionalProperties": false,
    });
    let source = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "minLength": 1 },
            "mode": { "enum": ["fast", "slow"] },
            "line": { "type": "integer", "minimum": 1, "maximum": 400 },
            "share": { "type": "number" },
            "edits": { "type": "array", "items": edit },
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    Schema::new(&source).expect("it is a schema")
}

#[track_caller]
fn wrong(input: Value, expected: &str) {
    let error = schema().accept(input).expect_err("it is invalid");
    assert_eq!(error, format!("invalid input: {expected}"));
}

#[track_caller]
fn right(input: Value, read: Value) {
    assert_eq!(schema().accept(input), Ok(read));
}

#[test]
fn an_error_names_the_place() {
    wrong(json!({}), "/path is required");
    wrong(json!(null), "/path is required");
    wrong(json!({ "path": 7 }), r#"/path: 7 is not of type "string""#);
    wrong(json!({ "path": null }), r#"/path: null is not of type "string""#);
    wrong(json!({ "path": "x", "line": "1" }), r#"/line: "1" is not of type "integer""#);
    wrong(json!({ "path": "x", "line": 1.5 }), r#"/line: 1.5 is not of type "integer""#);
    wrong(json!({ "path": "x", "line": 0 }), "/line: 0 is less than the minimum of 1");
    wrong(json!({ "path": "x", "mode": "odd" }), r#"/mode: "odd" is not one of "fast" or "slow""#);
    wrong(json!("x"), r#""x" is not of type "object""#);
    wrong(json!([]), r#"[] is not of type "object""#);
}

#[test]
fn every_wrong_place_is_named_however_deep() {
    wrong(
        json!({ "edits": [{ "old": 7 }, { "times": 1 }, { "old": "", "new": "" }] }),
        r#"/edits/0/old: 7 is not of type "string"; /edits/1/old is required; /edits/2/new is unknown; /path is required"#,
    );
    wrong(json!({ "path": "x", "a/b": 1, "~": 1 }), "/a~1b is unknown; /~0 is unknown");
    let edits = vec![json!({}); 9];
    let named = (0..5).map(|n| format!("/edits/{n}/old is required; ")).collect::<String>();
    wrong(json!({ "path": "x", "edits": edits }), &format!("{named}4 more"));
}

#[test]
fn a_long_value_is_not_repeated() {
    wrong(json!({ "path": vec!["long"; 9999] }), r#"/path: this is not of type "string""#);
}

#[test]
fn a_null_for_an_optional_argument_counts_as_left_out() {
    right(json!({ "path": "x", "line": null }), json!({ "path": "x" }));
    right(
        json!({ "path": "x", "edits": [{ "old": "a", "times": null }] }),
        json!({ "path": "x", "edits": [{ "old": "a" }] }),
    );
    wrong(json!({ "path": "x", "why": null }), "/why is unknown");
    wrong(json!({ "path": "x", "edits": [null] }), r#"/edits/0: null is not of type "object""#);
}

#[test]
fn a_whole_number_is_an_integer_however_it_is_written() {
    right(json!({ "path": "x", "line": 2.0 }), json!({ "path": "x", "line": 2 }));
    right(json!({ "path": "x", "share": 2.0 }), json!({ "path": "x", "share": 2.0 }));
    wrong(
        json!({ "path": "x", "line": 1e300 }),
        "/line: 1e+300 is greater than the maximum of 400",
    );
}

#[test]
fn no_reference_leads_out() {
    for place in ["http://127.0.0.1:9/x.json", "https://example.org/x", "file:///etc/passwd", "x"] {
        let error = Schema::new(&json!({ "properties": { "x": { "$ref": place } } }));
        assert!(error.is_err(), "{place}");
    }
    let inside = json!({
        "$defs": { "name": { "type": "string" } },
        "properties": { "x": { "$ref": "#/$defs/name" } },
    });
    let error = Schema::new(&inside).expect("it is a schema").accept(json!({ "x": 1 }));
    assert_eq!(error, Err(r#"invalid input: /x: 1 is not of type "string""#.to_owned()));
}

#[test]
fn what_is_no_schema_is_an_error() {
    assert!(Schema::new(&json!({ "type": "nothing" })).is_err());
    assert!(Schema::new(&json!(7)).is_err());
}
