//! Which tools are taken, and every reason why one is not.

use serde_json::{Value, json};

use super::*;

fn tool(name: &str) -> Value {
    json!({
        "name": name, "description": "Does it.", "execution_target": "local_runtime",
        "argument_resolution": "passthrough", "schema": { "type": "object", "properties": {} },
    })
}

/// A tool of which one member is another one.
fn with(member: &str, value: Value) -> Value {
    let mut tool = tool("save_note");
    tool[member] = value;
    tool
}

fn one(tool: &Value) -> Manifest {
    Manifest::validate(&json!({ "version": 1, "tools": [tool] }))
}

/// What is wrong with a tool; nothing if it is taken.
#[track_caller]
fn check(tool: &Value, reason: &str) {
    let manifest = one(tool);
    let said = manifest.rejected.first().map(|rejected| rejected.reason.as_str());
    assert_eq!(said.unwrap_or_default(), reason, "{tool}");
    assert_eq!(manifest.accepted.len(), usize::from(reason.is_empty()));
}

/// What is wrong with a whole manifest.
#[track_caller]
fn check_whole(manifest: &Value, reason: &str) {
    let told = json!(Manifest::validate(manifest));
    assert_eq!(told, json!({ "accepted": [], "rejected": [{ "name": "", "reason": reason }] }));
}

#[test]
fn a_whole_manifest_can_be_wrong() {
    check_whole(&json!([]), "client_tool_manifest must be an object");
    check_whole(&json!("x"), "client_tool_manifest must be an object");
    check_whole(&json!({}), "client_tool_manifest.tools must be a list");
    check_whole(&json!({ "tools": {} }), "client_tool_manifest.tools must be a list");
    let large = json!({ "tools": [], "note": "x".repeat(512_000) });
    check_whole(&large, "client_tool_manifest exceeds size limit");
    let many: Vec<Value> = (0..65).map(|n| tool(&format!("t{n}"))).collect();
    check_whole(&json!({ "tools": many }), "client_tool_manifest cannot exceed 64 tools");
    let enough = Manifest::validate(&json!({ "tools": many[..64] }));
    assert_eq!(enough.accepted.len(), 64);
}

#[test]
fn what_is_taken_is_echoed() {
    let mut brought = tool("read_file");
    let echoed = json!({ "accepted": [brought], "rejected": [] });
    assert_eq!(json!(one(&brought)), echoed);
    brought["executable_schema"] = json!({ "type": "object" });
    brought["argument_resolution"] = json!("backend_grounding");
    brought["execution_target"] = json!("sidecar");
    assert_eq!(json!(one(&brought)), json!({ "accepted": [brought], "rejected": [] }));
}

#[test]
fn what_may_be_left_out_is_filled_in() {
    let manifest = one(&json!({ "name": "n", "description": " d ", "schema": {} }));
    let told = json!(manifest);
    assert_eq!(told["accepted"][0]["execution_target"], "local_runtime");
    assert_eq!(told["accepted"][0]["argument_resolution"], "passthrough");
    assert_eq!(told["accepted"][0]["description"], "d");
    assert_eq!(manifest.accepted[0].parameters, json!({ "type": "object" }));
}

#[test]
fn rejections_carry_the_name_or_else_the_number() {
    let tools = json!([tool("a"), 7, tool("a"), { "description": "d" }]);
    let told = json!(Manifest::validate(&json!({ "tools": tools })));
    let expected = json!([
        { "name": "#1", "reason": "tool entry must be an object" },
        { "name": "a", "reason": "duplicate tool name" },
        { "name": "", "reason": "tool name is required" },
    ]);
    assert_eq!(told["rejected"], expected);
    assert_eq!(told["accepted"][0]["name"], "a");
}

#[test]
fn names_have_a_pattern() {
    check(&tool(""), "tool name is required");
    check(&tool("  "), "tool name is required");
    check(&with("name", json!(7)), "tool name is required");
    for bad in ["1a", "_a", "a b", "a.b", "é", &"a".repeat(97)] {
        check(&tool(bad), "tool name does not match allowed pattern");
    }
    for good in ["a", "A_9-b", &"a".repeat(96), "mouse_control", "read_file"] {
        check(&tool(good), "");
    }
    for reserved in ["web_search", "grounded_mouse_action", "grounded_scroll_action"] {
        check(&tool(reserved), "reserved backend tool names cannot be overridden");
    }
}

#[test]
fn descriptions_are_there_and_bounded() {
    check(&with("description", json!(" ")), "description is required");
    check(&with("description", json!(null)), "description is required");
    check(&with("description", json!("é".repeat(2000))), "");
    check(&with("description", json!("é".repeat(2001))), "description exceeds length limit");
}

#[test]
fn only_the_client_runs_its_tools() {
    check(&with("execution_target", json!("sidecar")), "");
    check(&with("execution_target", json!("cloud")), "invalid execution_target");
    check(&with("execution_target", json!(1)), "invalid execution_target");
    check(&with("execution_target", json!("backend")), "client manifests cannot add backend tools");
    check(&with("argument_resolution", json!("magic")), "invalid argument_resolution");
    check(&with("argument_resolution", json!([])), "invalid argument_resolution");
}

#[test]
fn the_first_thing_that_is_wrong_is_named() {
    let mut tool = with("description", json!(""));
    tool["execution_target"] = json!("cloud");
    tool["schema"] = json!(null);
    check(&tool, "description is required");
    tool["description"] = json!("d");
    check(&tool, "invalid execution_target");
    tool["execution_target"] = json!("local_runtime");
    check(&tool, "schema must be an object");
}

#[test]
fn schemas_are_checked() {
    let schema = |schema: Value, reason: &str| {
        let reason =
            if reason.is_empty() { String::new() } else { format!("invalid schema: {reason}") };
        check(&with("schema", schema), &reason);
    };
    check(&with("schema", json!("x")), "schema must be an object");
    schema(json!({ "properties": [] }), "properties must be an object");
    schema(json!({ "$schema": "x" }), "unsupported schema key '$schema'");
    schema(
        json!({ "properties": { "a": { "nullable": true } } }),
        "unsupported schema key 'nullable'",
    );
    schema(json!({ "anyOf": [{ "if": {} }] }), "unsupported schema key 'if'");
    schema(json!({ "items": { "x": 1 } }), "unsupported schema key 'x'");
    schema(json!({ "properties": { "a": 1 } }), "schema must be an object");
    schema(
        json!({ "additionalProperties": false, "enum": [{ "x": 1 }], "default": { "y": 1 } }),
        "",
    );
    let all: serde_json::Map<String, Value> =
        super::super::tool_schema::KEYS.split(' ').map(|key| (key.to_owned(), json!({}))).collect();
    schema(all.into(), "");
    schema(json!({ "description": "x".repeat(63_900) }), "");
    schema(json!({ "description": "x".repeat(64_000) }), "schema exceeds size limit");
}

#[test]
fn schemas_are_not_nested_for_ever() {
    let nested = |depth: usize| {
        (0..depth).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }))
    };
    check(&with("schema", nested(12)), "");
    let reason = "invalid schema: schema nesting exceeds depth limit";
    check(&with("schema", nested(13)), reason);
    let data = (0..20).fold(json!(1), |inner, _| json!([inner]));
    check(&with("schema", json!({ "default": data })), reason);
}

#[test]
fn a_schema_may_be_a_function() {
    let parameters = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let function = json!({ "type": "function", "name": "f", "parameters": parameters });
    assert_eq!(one(&with("schema", function)).accepted[0].parameters, parameters);
    let reason =
        "invalid schema: function schema must include a non-empty name and parameters object";
    for bad in [
        json!({ "type": "function" }),
        json!({ "type": "function", "name": " ", "parameters": {} }),
        json!({ "type": "function", "name": "f", "parameters": [] }),
    ] {
        check(&with("schema", bad), reason);
    }
}

#[test]
fn what_the_client_runs_in_the_end_is_checked_too() {
    check(&with("executable_schema", json!({ "type": "object" })), "");
    check(
        &with("executable_schema", json!({ "x": 1 })),
        "invalid executable_schema: unsupported schema key 'x'",
    );
    check(
        &with("executable_schema", json!(7)),
        "invalid executable_schema: schema must be an object",
    );
}
