//! The members of a JSON object, looked at one by one, with everything that is wrong with them.
//!
//! Faults have the words that clients of the original know: `{"type", "loc", "msg"}`. What was given
//! is not repeated in them, because it may be a picture.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use super::reply::Reply;
use crate::transport::query::parameter;
use crate::windie::wire::fields::one_of;

/// An object that is being read.
#[derive(Debug)]
pub(in crate::windie) struct Fields {
    place: Vec<Value>,
    members: Map<String, Value>,
    faults: Vec<Value>,
}

impl Fields {
    /// The object that a body is.
    pub(in crate::windie) fn of_body(body: &[u8]) -> Result<Self, Reply> {
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

    /// The parameters of a query that have these names.
    pub(in crate::windie) fn of_query(query: &str, names: &[&str]) -> Self {
        let given = |name: &&str| Some(((*name).to_owned(), parameter(query, name)?.into()));
        let members = names.iter().filter_map(given).collect();
        Self { place: vec![json!("query")], members, faults: Vec::new() }
    }

    /// Takes something as it is, unless it is left out or null.
    pub(in crate::windie) fn take(&mut self, name: &str) -> Option<Value> {
        self.given(name)
    }

    /// Takes one of some words, which must be there.
    pub(in crate::windie) fn word(
        &mut self,
        name: &str,
        words: &[&'static str],
    ) -> Option<&'static str> {
        match self.members.remove(name) {
            None => {
                self.missing(name);
                None
            }
            Some(value) => self.is_word(name, &value, words),
        }
    }

    /// Takes one of some words, which may be left out or null.
    pub(in crate::windie) fn maybe_word(
        &mut self,
        name: &str,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let value = self.given(name)?;
        self.is_word(name, &value, words)
    }

    /// Takes a text that must be there; empty if it is not.
    pub(in crate::windie) fn text(&mut self, name: &str, length: RangeInclusive<usize>) -> String {
        match self.members.remove(name) {
            None => self.missing(name),
            Some(value) => return self.is_text(&[json!(name)], value, length).unwrap_or_default(),
        }
        String::new()
    }

    /// Takes a text that may be left out or null.
    pub(in crate::windie) fn maybe_text(
        &mut self,
        name: &str,
        length: RangeInclusive<usize>,
    ) -> Option<String> {
        let value = self.given(name)?;
        self.is_text(&[json!(name)], value, length)
    }

    /// Takes a list of texts that must be there.
    pub(in crate::windie) fn texts(
        &mut self,
        name: &str,
        count: RangeInclusive<usize>,
        length: &RangeInclusive<usize>,
    ) -> Vec<String> {
        let items = self.list(name, count);
        let items = items.into_iter().enumerate();
        items
            .filter_map(|(index, item)| {
                self.is_text(&[json!(name), json!(index)], item, length.clone())
            })
            .collect()
    }

    /// Takes a list that must be there.
    pub(in crate::windie) fn list(
        &mut self,
        name: &str,
        count: RangeInclusive<usize>,
    ) -> Vec<Value> {
        let items = match self.members.remove(name) {
            None => {
                self.missing(name);
                return Vec::new();
            }
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.wrong(&[json!(name)], "list_type", "Input should be a valid list");
                return Vec::new();
            }
        };
        let (has, least, most) = (items.len(), *count.start(), *count.end());
        if has < least {
            let why = format!(
                "List should have at least {} after validation, not {has}",
                items_of(least)
            );
            self.wrong(&[json!(name)], "too_short", &why);
        } else if has > most {
            let why =
                format!("List should have at most {} after validation, not {has}", items_of(most));
            self.wrong(&[json!(name)], "too_long", &why);
        } else {
            return items;
        }
        Vec::new()
    }

    /// Takes a whole number that must be there; nothing if it is not as it should be.
    pub(in crate::windie) fn integer(
        &mut self,
        name: &str,
        within: RangeInclusive<i64>,
    ) -> Option<i64> {
        match self.members.remove(name) {
            None => {
                self.missing(name);
                None
            }
            Some(value) => self.is_integer(name, &value, within),
        }
    }

    /// Takes a whole number that may be left out.
    pub(in crate::windie) fn maybe_integer(
        &mut self,
        name: &str,
        within: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = self.members.remove(name)?;
        self.is_integer(name, &value, within)
    }

    /// Takes a number that may be left out.
    pub(in crate::windie) fn maybe_number(
        &mut self,
        name: &str,
        within: RangeInclusive<f64>,
    ) -> Option<f64> {
        let value = self.members.remove(name)?;
        let Some(number) = value.as_f64() else {
            self.wrong(&[json!(name)], "float_type", "Input should be a valid number");
            return None;
        };
        self.is_within(name, number, (*within.start(), *within.end())).then_some(number)
    }

    /// Takes a yes or no that may be left out.
    pub(in crate::windie) fn maybe_flag(&mut self, name: &str) -> Option<bool> {
        let value = self.members.remove(name)?;
        if !value.is_boolean() {
            self.wrong(&[json!(name)], "bool_type", "Input should be a valid boolean");
        }
        value.as_bool()
    }

    /// Looks into an object that must be there.
    pub(in crate::windie) fn object(&mut self, name: &str, look: impl FnMut(&mut Self)) {
        match self.members.remove(name) {
            None => self.missing(name),
            Some(value) => self.inside(&[json!(name)], value, look),
        }
    }

    /// Looks into an object that may be left out or null.
    pub(in crate::windie) fn maybe_object(&mut self, name: &str, look: impl FnMut(&mut Self)) {
        if let Some(value) = self.given(name) {
            self.inside(&[json!(name)], value, look);
        }
    }

    /// Looks into every object of a list that may be left out or null, and has at most so many.
    pub(in crate::windie) fn maybe_objects(
        &mut self,
        name: &str,
        most: usize,
        mut look: impl FnMut(&mut Self),
    ) {
        if self.members.get(name).is_none_or(Value::is_null) {
            self.members.remove(name);
            return;
        }
        for (index, item) in self.list(name, 0..=most).into_iter().enumerate() {
            self.inside(&[json!(name), json!(index)], item, &mut look);
        }
    }

    fn is_word(
        &mut self,
        name: &str,
        value: &Value,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let word = words.iter().find(|word| value.as_str() == Some(word)).copied();
        if word.is_none() {
            let why = format!("Input should be {}", one_of(words));
            self.wrong(&[json!(name)], "literal_error", &why);
        }
        word
    }

    fn inside(&mut self, at: &[Value], value: Value, mut look: impl FnMut(&mut Self)) {
        let Value::Object(members) = value else {
            return self.wrong(at, "model_attributes_type", NOT_AN_OBJECT);
        };
        let place = self.place.iter().chain(at).cloned().collect();
        let mut inner = Self { place, members, faults: Vec::new() };
        look(&mut inner);
        self.faults.append(&mut inner.faults);
    }

    fn is_integer(
        &mut self,
        name: &str,
        value: &Value,
        within: RangeInclusive<i64>,
    ) -> Option<i64> {
        let Some(number) = value.as_f64() else {
            self.wrong(&[json!(name)], "int_type", "Input should be a valid integer");
            return None;
        };
        if number.fract() != 0.0 {
            let why = "Input should be a valid integer, got a number with a fractional part";
            self.wrong(&[json!(name)], "int_from_float", why);
            return None;
        }
        let most = Some(*within.end()).filter(|most| *most < i64::MAX);
        #[expect(clippy::cast_precision_loss, reason = "limits are small, or none at all")]
        let limits = (*within.start() as f64, most.map_or(f64::INFINITY, |most| most as f64));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a number beyond the type is its limit"
        )]
        self.is_within(name, number, limits).then_some(number as i64)
    }

    /// Notes a fault and gives false if a number is not between the limits.
    fn is_within(&mut self, name: &str, number: f64, (least, most): (f64, f64)) -> bool {
        if number < least {
            let why = format!("Input should be greater than or equal to {least}");
            self.wrong(&[json!(name)], "greater_than_equal", &why);
            return false;
        }
        if number > most {
            let why = format!("Input should be less than or equal to {most}");
            self.wrong(&[json!(name)], "less_than_equal", &why);
            return false;
        }
        true
    }

    /// Says what is wrong besides, at a member or at the whole.
    pub(in crate::windie) fn wrong(&mut self, at: &[Value], kind: &str, message: &str) {
        let place: Vec<Value> = self.place.iter().chain(at).cloned().collect();
        self.faults.push(fault(&place, kind, message));
    }

    /// That is all there should be; more is not minded.
    pub(in crate::windie) fn rest(self) -> Result<(), Reply> {
        if self.faults.is_empty() { Ok(()) } else { Err(Reply::unprocessable(self.faults)) }
    }

    /// That is all there may be.
    pub(in crate::windie) fn whole(mut self) -> Result<(), Reply> {
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

    fn missing(&mut self, name: &str) {
        self.wrong(&[json!(name)], "missing", "Field required");
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

fn items_of(count: usize) -> String {
    format!("{count} item{}", if count == 1 { "" } else { "s" })
}

fn characters(count: usize) -> String {
    format!("{count} character{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
