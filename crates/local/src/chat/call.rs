//! Parses tool calls as small models write them: JSON with mistakes.

use quintet_kernel::model::RawToolCall;
use serde_json::{Map, Value};

/// Parses a call; `None` if the text is not one.
pub(super) fn read(text: &str) -> Option<RawToolCall> {
    let text = text.trim();
    let value = serde_json::from_str(text).or_else(|_| serde_json::from_str(&repair(text))).ok()?;
    call_of(&value)
}

/// The end of the object that the text begins with. Braces in strings do not count, and invalid
/// JSON such as a line break in a string is tolerated.
pub(super) fn object_end(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// True if an object that begins like this may be a call.
pub(super) fn may_be_call(text: &str) -> bool {
    const KEYS: [&str; 6] =
        ["\"name\"", "\"arguments\"", "\"function\"", "\"parameters\"", "\"tool\"", "\"type\""];
    let Some(inside) = text.strip_prefix('{') else { return false };
    let inside = inside.trim_start();
    KEYS.iter().any(|key| inside.starts_with(key) || key.starts_with(inside))
}

fn call_of(value: &Value) -> Option<RawToolCall> {
    let object = value.as_object()?;
    if let Some(inner @ Value::Object(_)) = object.get("function") {
        return call_of(inner);
    }
    let name = ["name", "function", "tool"].iter().find_map(|key| object.get(*key)?.as_str())?;
    let given = ["arguments", "parameters", "input"].iter().find_map(|key| object.get(*key));
    Some(RawToolCall {
        id: String::new(),
        tool: name.into(),
        arguments: Value::Object(arguments(given?)?).to_string(),
    })
}

/// The arguments; some models write them as a string of JSON.
fn arguments(given: &Value) -> Option<Map<String, Value>> {
    match given {
        Value::Object(object) => Some(object.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Null => Some(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

/// Escapes raw line breaks and tabs in strings.
fn repair(text: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let mut mended = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' if quoted => mended.push_str("\\n"),
            '\r' if quoted => mended.push_str("\\r"),
            '\t' if quoted => mended.push_str("\\t"),
            other => mended.push(other),
        }
        if letter == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = !escaped && quoted && letter == '\\';
    }
    mended
}
