//! Limits the nesting depth of values from outside, because a value that is nested too deeply
//! cannot be decoded from the journal.

use serde_json::{Map, Value};

/// The codec reads at most 128 levels, and an event adds some levels around a value.
pub(crate) const LEVELS_LIMIT: usize = 100;

/// The nesting depth of a value.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(inner) => 1 + inner.iter().map(depth).max().unwrap_or(0),
        Value::Object(inner) => 1 + inner.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Removes parts of a value that are nested too deeply to be stored.
pub(crate) fn cut(value: &mut Value) {
    cut_at(value, LEVELS_LIMIT);
}

/// Like [`cut`], for the values of a map.
pub(crate) fn cut_values(map: &mut Map<String, Value>) {
    map.values_mut().for_each(cut);
}

fn cut_at(value: &mut Value, levels: usize) {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => *value = Value::Null,
        Value::Array(inner) => inner.iter_mut().for_each(|value| cut_at(value, levels - 1)),
        Value::Object(inner) => inner.values_mut().for_each(|value| cut_at(value, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
