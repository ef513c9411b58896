//! Arguments of a call, as the tool's own type.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the arguments. They match the tool's schema, so the only error left is a number that does not fit
/// the type of its field.
pub(crate) fn parse<T: DeserializeOwned>(input: &Value) -> Result<T, String> {
    T::deserialize(input).map_err(|error| format!("invalid input: {error}"))
}
