//! The members of a JSON object, looked at one by one, with everything that is wrong with them.
//!
//! Faults have the words that clients of the original know: `{"type", "loc", "msg"}`. What was given
//! is not repeated in them, because it may be a picture.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use super::reply::Reply;

/// An object that is being read.
#[derive(Debug)]
pub(in super::super) struct Fields {
    place: Vec<Value>,
    members: Map<String, Value>,
    faults: Vec<Value>,
}

impl Fields {
    /// The object that a body is.
    pub(in super::super) fn of_body(body: &[u8]) -> Result<Self, Reply> {
        let place = vec![json!("body")];
        if body.is_empty() {
            return Err(Reply::unprocessable(vec![fault(&place, "missing", "Field required")]));
        }
        let value = serde_json::from_slice(body).map_err(|error| {
            let place = [json!("body"), json!(error.column())];
            Reply::unprocessable(vec![fault(&place, "json_invalid", "JSON decode error")])
        })?;
        let mut fields = Self { place, members: Map::new(), faults: Vec::new() };
        match value {
            Value::Object(members) => fields.members = members,
            _ => fields.wrong(&[], "model_attributes_type", NOT_AN_OBJECT),
        }
        if fields.faults.is_empty() { Ok(fields) } else { Err(Reply::unprocessable(fields.faults)) }
    }

    /// Takes a text that may be left out or null.
    pub(in super::super) fn maybe_text(
        &mut self,
        name: &str,
        length: RangeInclusive<usize>,
    ) -> Option<String> {
        let value = self.given(name)?;
        self.is_text(&[json!(name)], value, length)
    }

    /// Says what is wrong besides, at a member or at the whole.
    pub(in super::super) fn wrong(&mut self, at: &[Value], kind: &str, message: &str) {
        let place: Vec<Value> = self.place.iter().chain(at).cloned().collect();
        self.faults.push(fault(&place, kind, message));
    }

    /// That is all there should be; more is not minded.
    pub(in super::super) fn rest(self) -> Result<(), Reply> {
        if self.faults.is_empty() { Ok(()) } else { Err(Reply::unprocessable(self.faults)) }
    }

    /// That is all there may be.
    pub(in super::super) fn whole(mut self) -> Result<(), Reply> {
        let extra: Vec<String> = self.members.keys().cloned().collect();
        for name in extra {
            self.wrong(&[json!(name)], "extra_forbidden", "Extra inputs are not permitted");
        }
        self.rest()
    }

    /// What a member is, unless it is left out or null.
    fn given(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).filter(|value| !value.is_null())
    }

    fn is_text(
        &mut self,
        at: &[Value],
        value: Value,
        length: RangeInclusive<usize>,
    ) -> Option<String> {
        let Value::String(text) = value else {
            self.wrong(at, "string_type", "Input should be a valid string");
            return None;
        };
        let (has, least, most) = (text.chars().count(), *length.start(), *length.end());
        if has < least {
            let why = format!("String should have at least {}", characters(least));
            self.wrong(at, "string_too_short", &why);
        } else if has > most {
            let why = format!("String should have at most {}", characters(most));
            self.wrong(at, "string_too_long", &why);
        } else {
            return Some(text);
        }
        None
    }
}

const NOT_AN_OBJECT: &str = "Input should be a valid dictionary or object to extract fields from";

fn fault(place: &[Value], kind: &str, message: &str) -> Value {
    json!({ "type": kind, "loc": place, "msg": message })
}

fn characters(count: usize) -> String {
    format!("{count} character{}", if count == 1 { "" } else { "s" })
}
