//! Arguments of a call, as the tool's own type.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads the arguments; an error names the argument that is wrong.
pub(crate) fn parse<T: DeserializeOwned>(input: &Value) -> Result<T, String> {
    // Some models send nothing at all to a tool that needs nothing.
    let input = if input.is_null() { &Value::Object(Map::new()) } else { input };
    T::deserialize(input).map_err(|error| {
        let error = error.to_string();
        match culprit::<T>(input, &error) {
            Some(name) => format!("invalid input: `{name}`: {error}"),
            None => format!("invalid input: {error}"),
        }
    })
}

/// The argument that causes an error: the one without which there is another or none.
fn culprit<'a, T: DeserializeOwned>(input: &'a Value, error: &str) -> Option<&'a str> {
    let fields = input.as_object()?;
    // What is missing is no fault of what is there.
    if error.starts_with("missing field") {
        return None;
    }
    let blames = |name: &&String| {
        let mut rest = fields.clone();
        rest.remove(*name);
        T::deserialize(Value::Object(rest)).err().is_none_or(|other| other.to_string() != error)
    };
    fields.keys().find(blames).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Given {
        #[expect(dead_code, reason = "only its type matters")]
        path: String,
        #[expect(dead_code, reason = "only its type matters")]
        line: Option<u64>,
    }

    #[derive(Debug, Deserialize)]
    struct Pair {
        #[expect(dead_code, reason = "only its type matters")]
        first: String,
        #[expect(dead_code, reason = "only its type matters")]
        second: String,
    }

    #[track_caller]
    fn check(input: Value, expected: &str) {
        let error = parse::<Given>(&input).expect_err("it is invalid");
        assert_eq!(error, expected);
    }

    #[test]
    fn an_error_names_the_argument() {
        check(json!({"line": 1}), "invalid input: missing field `path`");
        let error = parse::<Pair>(&json!({"first": "x"})).expect_err("it is invalid");
        assert_eq!(error, "invalid input: missing field `second`");
        check(json!(null), "invalid input: missing field `path`");
        check(
            json!({"path": "x", "line": "one"}),
            "invalid input: `line`: invalid type: string \"one\", expected u64",
        );
        check(
            json!({"path": 7}),
            "invalid input: `path`: invalid type: integer `7`, expected a string",
        );
        check(json!("x"), "invalid input: invalid type: string \"x\", expected struct Given");
    }

    #[test]
    fn more_than_asked_for_is_no_error() {
        assert!(parse::<Given>(&json!({"path": "x", "why": "because"})).is_ok());
        assert!(parse::<Given>(&json!({"path": "x", "line": null})).is_ok());
    }
}
