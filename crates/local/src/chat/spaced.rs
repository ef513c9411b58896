//! JSON with a space after every comma and colon, as in the training data of the models.

use std::io::{Result, Write};

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// The value as text.
pub(super) fn spaced(value: &Value) -> String {
    let mut text = Vec::new();
    let done = value.serialize(&mut Serializer::with_formatter(&mut text, Spaced));
    done.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_else(|| value.to_string())
}

struct Spaced;

impl Spaced {
    fn separate<W: ?Sized + Write>(to: &mut W, first: bool) -> Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }
}

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> Result<()> {
        Self::separate(to, first)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> Result<()> {
        Self::separate(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> Result<()> {
        to.write_all(b": ")
    }
}
