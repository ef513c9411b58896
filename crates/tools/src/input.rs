//! Arguments of a call, as the tool's own type.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the arguments. They fit the tool's schema, so what is left to go wrong is a number that
/// is too large for us.
pub(crate) fn parse<T: DeserializeOwned>(input: &Value) -> Result<T, String> {
    T::deserialize(input).map_err(|error| format!("invalid input: {error}"))
}
