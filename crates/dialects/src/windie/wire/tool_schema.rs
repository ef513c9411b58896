//! The JSON Schemas that a client's tools may use.

use serde_json::{Map, Value};

/// The largest schema, in bytes.
const SCHEMA_BYTES_LIMIT: usize = 64_000;
/// How deep schemas may be nested.
const DEPTH_LIMIT: usize = 12;

/// The keywords of schemas that models accept.
pub(crate) const KEYS: &str = "$defs $ref additionalProperties allOf anyOf const default description enum \
    exclusiveMaximum exclusiveMinimum format items maxItems maxLength maximum minItems minLength minimum \
    oneOf pattern properties required title type";

/// The schema of a tool's arguments, which may also be given as a function with parameters. Fails with the
/// first thing that is wrong.
pub(crate) fn parameters(schema: &Value) -> Result<Value, String> {
    let Value::Object(members) = schema else {
        return Err("schema must be an object".into());
    };
    if schema.to_string().len() > SCHEMA_BYTES_LIMIT {
        return Err("schema exceeds size limit".into());
    }
    let inner = match members.get("type").and_then(Value::as_str) {
        Some("function") => function(members)?,
        _ => members,
    };
    check(inner, 0)?;
    let mut inner = inner.clone();
    // Providers accept only objects as arguments.
    inner.entry("type").or_insert_with(|| "object".into());
    Ok(Value::Object(inner))
}

fn function(members: &Map<String, Value>) -> Result<&Map<String, Value>, String> {
    let name = members.get("name").and_then(Value::as_str).unwrap_or_default();
    match members.get("parameters") {
        Some(Value::Object(parameters)) if !name.trim().is_empty() => Ok(parameters),
        _ => Err("function schema must include a non-empty name and parameters object".into()),
    }
}

fn check(schema: &Map<String, Value>, depth: usize) -> Result<(), String> {
    level(depth)?;
    for (key, value) in schema {
        match key.as_str() {
            "properties" | "$defs" => {
                let Value::Object(schemas) = value else {
                    return Err(format!("{key} must be an object"));
                };
                schemas.values().try_for_each(|schema| inner(schema, depth + 1))?;
            }
            "items" | "additionalProperties" | "allOf" | "anyOf" | "oneOf" => {
                alternatives(value, depth + 1)?;
            }
            key if KEYS.split(' ').any(|known| known == key) => data(value, depth)?,
            key => return Err(format!("unsupported schema key '{key}'")),
        }
    }
    Ok(())
}

fn alternatives(value: &Value, depth: usize) -> Result<(), String> {
    match value {
        Value::Array(schemas) => schemas.iter().try_for_each(|schema| inner(schema, depth)),
        schema => inner(schema, depth),
    }
}

fn inner(schema: &Value, depth: usize) -> Result<(), String> {
    match schema {
        Value::Object(schema) => check(schema, depth),
        Value::Bool(_) => Ok(()),
        _ => Err("schema must be an object".into()),
    }
}

/// Values inside a schema count towards the depth as well.
fn data(value: &Value, depth: usize) -> Result<(), String> {
    level(depth)?;
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| data(value, depth + 1)),
        Value::Object(values) => values.values().try_for_each(|value| data(value, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn level(depth: usize) -> Result<(), String> {
    if depth > DEPTH_LIMIT { Err("schema nesting exceeds depth limit".into()) } else { Ok(()) }
}
