//! The subset of JSON Schema that the API supports. The API rejects requests with unknown keywords,
//! so known ones are copied instead of unknown ones dropped.

use serde_json::{Map, Value, json};

/// Keywords that are copied unchanged; those that contain schemas are handled below.
const KEYWORDS: [&str; 13] = [
    "description",
    "title",
    "nullable",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "pattern",
    "required",
];

/// Maximum nesting; deeper schemas are usually recursive.
const DEPTH_LIMIT: usize = 16;

/// The schema in keywords that the API supports; `None` if there are no arguments.
pub(super) fn subset(schema: &Value) -> Option<Value> {
    let cleaned = clean(schema, schema, 0);
    let any = cleaned["properties"].as_object().is_some_and(|properties| !properties.is_empty());
    any.then_some(cleaned)
}

fn clean(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEPTH_LIMIT {
        return json!({ "type": "string" });
    }
    let schema = resolve(schema, root);
    let Some(given) = schema.as_object() else { return json!({ "type": "string" }) };
    let mut out = Map::new();
    for word in KEYWORDS {
        if let Some(value) = given.get(word) {
            out.insert(word.into(), value.clone());
        }
    }
    kind(given, &mut out);
    choices(given, &mut out);
    inner(given, root, depth, &mut out);
    // Only existing properties may be required.
    let known = out.get("properties").cloned().unwrap_or_default();
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| known.get(name).is_some()));
    }
    Value::Object(out)
}

/// Follows a reference within the schema.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str);
    let found = target.and_then(|target| root.pointer(target.strip_prefix('#')?));
    found.unwrap_or(schema)
}

/// `type` may be a list, in which "null" only means that the value is optional.
fn kind(given: &Map<String, Value>, out: &mut Map<String, Value>) {
    let names: Vec<&str> = match given.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ if given.contains_key("properties") => vec!["object"],
        _ => Vec::new(),
    };
    if names.contains(&"null") {
        out.insert("nullable".into(), true.into());
    }
    if let Some(name) = names.into_iter().find(|name| *name != "null") {
        out.insert("type".into(), name.into());
    }
}

/// Only strings can be enumerated; for numbers only the type is sent.
fn choices(given: &Map<String, Value>, out: &mut Map<String, Value>) {
    let constant = given.get("const").map(std::slice::from_ref);
    let listed = given.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let Some(choices) = listed.or(constant) else { return };
    if choices.iter().all(Value::is_string) && !choices.is_empty() {
        out.insert("type".into(), "string".into());
        out.insert("enum".into(), json!(choices));
    } else if choices.iter().all(Value::is_i64) && !choices.is_empty() {
        out.insert("type".into(), "integer".into());
    }
}

fn inner(given: &Map<String, Value>, root: &Value, depth: usize, out: &mut Map<String, Value>) {
    if let Some(Value::Object(properties)) = given.get("properties") {
        let cleaned =
            properties.iter().map(|(name, schema)| (name.clone(), clean(schema, root, depth + 1)));
        out.insert("properties".into(), Value::Object(cleaned.collect()));
    }
    if let Some(items) = given.get("items") {
        out.insert("items".into(), clean(items, root, depth + 1));
    } else if out.get("type").is_some_and(|kind| kind == "array") {
        out.insert("items".into(), json!({ "type": "string" }));
    }
    let either = ["anyOf", "oneOf"].iter().find_map(|word| given.get(*word)?.as_array());
    if let Some(either) = either {
        let cleaned = either.iter().map(|schema| clean(schema, root, depth + 1));
        out.insert("anyOf".into(), cleaned.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_keywords_are_left() {
        let schema = json!({
            "$schema": "x", "type": "object", "additionalProperties": false,
            "$defs": {"place": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "required": ["path", "gone"],
            "properties": {
                "path": {"type": ["string", "null"], "format": "uri", "default": "."},
                "mode": {"const": "fast"},
                "level": {"enum": [1, 2]},
                "at": {"$ref": "#/$defs/place"},
                "list": {"type": "array"},
                "either": {"oneOf": [{"type": "string"}, {"type": "number"}]},
            },
        });
        let expected = json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "nullable": true},
                "mode": {"type": "string", "enum": ["fast"]},
                "level": {"type": "integer"},
                "at": {"type": "object", "properties": {"x": {"type": "integer"}}},
                "list": {"type": "array", "items": {"type": "string"}},
                "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            },
        });
        assert_eq!(subset(&schema), Some(expected));
    }

    #[test]
    fn empty_and_recursive_arguments() {
        assert_eq!(subset(&json!({"type": "object", "properties": {}})), None);
        assert_eq!(subset(&json!(true)), None);
        let endless = json!({"properties": {"a": {"$ref": "#"}}});
        assert!(subset(&endless).unwrap().to_string().len() < 2_000);
    }
}
