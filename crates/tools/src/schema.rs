//! Validates a tool's arguments against its JSON Schema, and lists the errors by place.
//!
//! References are only followed inside the schema itself. One to a file or a server is an error, because
//! schemas can come from untrusted servers.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::Location;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// How many wrong places are named.
const NAMED_LIMIT: usize = 5;
/// How much of a wrong value is repeated.
const SHOWN_LIMIT: usize = 80;

/// A schema, ready to check with.
#[derive(Debug)]
pub(crate) struct Schema {
    source: Value,
    validator: Validator,
}

impl Schema {
    /// Compiles a schema; an error says why it is invalid.
    pub(crate) fn new(source: &Value) -> Result<Self, String> {
        let validator = jsonschema::options().offline().build(source);
        let validator = validator.map_err(|error| error.to_string())?;
        Ok(Self { source: source.clone(), validator })
    }

    /// The arguments as the tool reads them, or every place that is wrong.
    pub(crate) fn accept(&self, input: Value) -> Result<Value, String> {
        // Some models send nothing at all to a tool that needs nothing.
        let mut input = if input.is_null() { Value::Object(Map::new()) } else { input };
        settle(&mut input, &self.source);
        let mut wrong: Vec<_> = self.validator.iter_errors(&input).flat_map(places).collect();
        if wrong.is_empty() {
            return Ok(input);
        }
        if wrong.len() > NAMED_LIMIT {
            let more = wrong.split_off(NAMED_LIMIT).len();
            wrong.push(format!("{more} more"));
        }
        Err(format!("invalid input: {}", wrong.join("; ")))
    }
}

/// Writes the same arguments as Rust reads them: a `null` for an optional one counts as left out,
/// since some models name every argument, and 2.0 is the integer 2.
fn settle(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            let known = |name: &str| schema.get("properties")?.get(name);
            fields.retain(|name, value| {
                !value.is_null() || known(name).is_none() || requires(schema, name)
            });
            for (name, value) in fields {
                settle(value, known(name).unwrap_or(&Value::Null));
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| settle(item, schema));
        }
        Value::Number(number) if schema.get("type").is_some_and(|kind| kind == "integer") => {
            if let Some(whole) = number.as_f64().and_then(whole) {
                *value = whole.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// A number as an integer, as far as floating point is exact.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(number: f64) -> Option<i64> {
    let exact = number.fract() == 0.0 && number.abs() <= (1_u64 << 53) as f64;
    exact.then_some(number as i64)
}

/// The messages of an error, one per place.
fn places(error: ValidationError<'_>) -> Vec<String> {
    let at = error.instance_path();
    let is_unknown = |name: &String| format!("{} is unknown", at.join(name.as_str()).as_str());
    match error.kind() {
        Kind::Required { property: Value::String(name) } => {
            vec![format!("{} is required", at.join(name.as_str()).as_str())]
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(is_unknown).collect()
        }
        _ => vec![complaint(at, &error)],
    }
}

fn complaint(at: &Location, error: &ValidationError<'_>) -> String {
    let long = error.instance().to_string().len() > SHOWN_LIMIT;
    let why = if long { error.masked_with("this").to_string() } else { error.to_string() };
    if at.is_empty() { why } else { format!("{}: {why}", at.as_str()) }
}
