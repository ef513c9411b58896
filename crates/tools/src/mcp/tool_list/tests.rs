//! Which tools of a list can be used.

use super::*;

fn check(schema: Value) -> Result<Value, String> {
    let (good, bad) = read(vec![json!({ "name": "t", "inputSchema": schema })]);
    good.into_iter().next().map(|tool| tool.schema).ok_or_else(|| bad.join("; "))
}

#[test]
fn a_bad_tool_does_not_hide_the_others() {
    let object = json!({ "type": "object" });
    let (good, bad) = read(vec![
        json!({ "name": "b", "inputSchema": object }),
        json!({ "name": "none" }),
        json!({ "name": "text", "inputSchema": "nonsense" }),
        json!({ "inputSchema": object }),
        json!(7),
        json!({ "name": "wrong", "inputSchema": { "type": "object", "properties": { "a": { "type": 7 } } } }),
        json!({ "name": "a", "inputSchema": object, "title": "A title" }),
        json!({ "name": "a", "inputSchema": object }),
    ]);
    let names: Vec<&str> = good.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(good[0].description, "A title");
    assert_eq!(bad.len(), 6, "{bad:?}");
}

#[test]
fn a_schema_is_completed() {
    assert_eq!(check(json!({})), Ok(json!({ "type": "object", "properties": {} })));
    assert!(check(json!({ "type": "string" })).is_err());
    assert!(check(json!({ "type": "object", "properties": [] })).is_err());
}

#[test]
fn references_are_replaced_by_what_they_lead_to() {
    let schema = json!({
        "type": "object",
        "properties": { "at": { "$ref": "#/$defs/Point", "description": "where" } },
        "$defs": { "Point": { "type": "object", "properties": { "x": { "$ref": "#/$defs/X" } } }, "X": { "type": "number" } },
    });
    let point = json!({ "type": "object", "properties": { "x": { "type": "number" } }, "description": "where" });
    assert_eq!(check(schema), Ok(json!({ "type": "object", "properties": { "at": point } })));
}

#[test]
fn a_schema_that_is_a_reference_is_what_it_leads_to() {
    let point = json!({ "type": "object", "properties": { "x": { "type": "number" } } });
    let schema = json!({ "$ref": "#/definitions/Point", "definitions": { "Point": point } });
    assert_eq!(check(schema), Ok(point));
}

#[test]
fn a_reference_to_itself_is_cut_and_one_to_elsewhere_refused() {
    let itself = json!({ "type": "object", "properties": { "a": { "$ref": "#" } } });
    assert_eq!(
        check(itself).map(|schema| schema["properties"]["a"]["properties"]["a"].clone()),
        Ok(json!({}))
    );
    let elsewhere =
        json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/x" } } });
    assert!(check(elsewhere).is_err());
    let mut deep = json!({ "type": "string" });
    for _ in 0..200 {
        deep = json!({ "anyOf": [deep] });
    }
    assert!(check(json!({ "properties": { "a": deep } })).is_err());
}
