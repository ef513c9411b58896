//! Reads JSON objects member by member and collects all errors, in the wording of the original's validation,
//! which its clients expect.
//!
//! An invalid value is read as empty; [`Faults::unless`] prevents its use. Values are not repeated in errors,
//! because they may be pictures.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// The most faults of one message that are reported.
const FAULTS_LIMIT: usize = 100;
/// The most entries of a list without a limit of its own.
pub(crate) const ENTRIES_LIMIT: usize = 10_000;
/// The kind of fault of a value that is no object.
const NOT_AN_OBJECT: &str = "model_attributes_type";

/// The faults that were found so far.
#[derive(Debug, Default)]
pub(crate) struct Faults(RefCell<Vec<Fault>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    /// The members and entries that lead there.
    place: Vec<Value>,
    kind: &'static str,
    message: String,
}

/// All faults of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Wrong(Vec<Fault>);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Fault { place, kind, message }) in self.0.iter().enumerate() {
            let segment = |at: &Value| at.as_str().map_or_else(|| at.to_string(), String::from);
            let place: Vec<String> = place.iter().map(segment).collect();
            let (between, place) = (if n == 0 { "" } else { "; " }, place.join("."));
            let object = message.split(" or object").next().filter(|_| *kind == NOT_AN_OBJECT);
            write!(f, "{between}{place}: {}", object.unwrap_or(message))?;
        }
        Ok(())
    }
}

impl Wrong {
    /// A single fault.
    pub(crate) fn one(place: &[Value], kind: &'static str, message: &str) -> Self {
        Self(vec![Fault { place: place.to_vec(), kind, message: message.into() }])
    }

    /// The faults in the form of HTTP answers.
    pub(crate) fn details(&self) -> Value {
        let shown =
            |fault: &Fault| json!({ "type": fault.kind, "loc": fault.place, "msg": fault.message });
        self.0.iter().map(shown).collect()
    }
}

impl Faults {
    fn add(&self, place: Vec<Value>, kind: &'static str, message: impl Into<String>) {
        let mut faults = self.0.borrow_mut();
        if faults.len() < FAULTS_LIMIT {
            faults.push(Fault { place, kind, message: message.into() });
        }
    }

    /// The value that was read, if there was no fault.
    pub(crate) fn unless<T>(self, read: T) -> Result<T, Wrong> {
        let faults = self.0.into_inner();
        if faults.is_empty() { Ok(read) } else { Err(Wrong(faults)) }
    }
}

/// Reads an object with a name. Fails with all of its faults.
pub(crate) fn read<T>(
    name: &str,
    value: &Value,
    look: impl FnOnce(&Object<'_>) -> T,
) -> Result<T, Wrong> {
    let faults = Faults::default();
    let read = Object::new(name, value, &faults).map(|object| look(&object));
    faults.unless(read).map(|read| read.expect("what is no object has a fault"))
}

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// An object and its place in the message.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    members: &'a Map<String, Value>,
    place: Vec<Value>,
    faults: &'a Faults,
}

impl<'a> Object<'a> {
    /// An object at the top level; its name may be empty.
    pub(crate) fn new(name: &str, value: &'a Value, faults: &'a Faults) -> Option<Self> {
        let place = Some(name.into()).filter(|_| !name.is_empty());
        Self::at(place.into_iter().collect(), value, faults)
    }

    fn at(place: Vec<Value>, value: &'a Value, faults: &'a Faults) -> Option<Self> {
        let Value::Object(members) = value else {
            let message = "Input should be a valid dictionary or object to extract fields from";
            faults.add(place, NOT_AN_OBJECT, message);
            return None;
        };
        Some(Self { members, place, faults })
    }

    /// The same object at the top level, with its own list of faults.
    pub(crate) fn judged(&self, faults: &'a Faults) -> Self {
        Self { members: self.members, place: Vec::new(), faults }
    }

    /// The members as they are.
    pub(crate) fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    /// Adds a fault of the object itself, or of a value in it.
    pub(crate) fn fault(&self, at: &[&str], kind: &'static str, message: impl Into<String>) {
        let inside = at.iter().map(|name| Value::from(*name));
        self.faults.add(self.place.iter().cloned().chain(inside).collect(), kind, message);
    }

    /// Adds a fault of a member that has the right type and a wrong value.
    pub(crate) fn wrong(&self, name: &str, message: impl Into<String>) {
        self.fault(&[name], "value_error", message);
    }

    /// Reports members other than these, which are separated by blanks.
    pub(crate) fn only(&self, known: &str) {
        let is_known = |name: &&String| known.split(' ').any(|known| known == name.as_str());
        for name in self.members.keys().filter(|name| !is_known(name)) {
            self.fault(&[name], "extra_forbidden", "Extra inputs are not permitted");
        }
    }

    /// A member, unless it is missing or null.
    pub(crate) fn member(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// A member that may be missing or null.
    pub(crate) fn field<'o>(&'o self, name: &'o str) -> Field<'o, 'a> {
        Field { value: self.member(name), object: self, name, index: None }
    }

    /// A member that may be missing, but not null.
    pub(crate) fn not_null<'o>(&'o self, name: &'o str) -> Field<'o, 'a> {
        Field { value: self.members.get(name), ..self.field(name) }
    }

    /// A required member.
    pub(crate) fn needed<'o>(&'o self, name: &'o str) -> Field<'o, 'a> {
        let field = self.not_null(name);
        if field.value.is_none() {
            field.fault("missing", "Field required");
        }
        field
    }

    /// A text with a number of characters in a range; may be missing or null.
    pub(crate) fn text(&self, name: &str, length: RangeInclusive<usize>) -> Option<String> {
        self.field(name).text(length)
    }

    /// A required text with a number of characters in a range.
    pub(crate) fn needed_text(&self, name: &str, length: RangeInclusive<usize>) -> String {
        self.needed(name).text(length).unwrap_or_default()
    }

    /// An object that may be missing or null.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        self.field(name).object()
    }

    /// An object that is empty if it is missing or null.
    pub(crate) fn object_or_empty(&self, name: &str) -> Option<Self> {
        match self.member(name) {
            Some(_) => self.object(name),
            None => Some(Self { members: &EMPTY, place: self.place_of(name), faults: self.faults }),
        }
    }

    /// The objects of a list with at most so many, each read by a function.
    pub(crate) fn objects<T>(&self, name: &str, most: usize, look: impl Fn(&Self) -> T) -> Vec<T> {
        self.field(name).objects(most, look)
    }

    fn place_of(&self, name: &str) -> Vec<Value> {
        self.place.iter().cloned().chain([name.into()]).collect()
    }
}

/// A member of an object or an entry of a list in it. Every reader returns `None` if it is missing, and `None`
/// with a fault if it has another type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'o, 'a> {
    value: Option<&'a Value>,
    object: &'o Object<'a>,
    name: &'o str,
    /// The index of an entry of a list.
    index: Option<usize>,
}

impl<'o, 'a> Field<'o, 'a> {
    fn place(&self) -> Vec<Value> {
        let mut place = self.object.place_of(self.name);
        place.extend(self.index.map(Value::from));
        place
    }

    fn fault(&self, kind: &'static str, message: impl Into<String>) {
        self.object.faults.add(self.place(), kind, message);
    }

    /// The value as a type.
    fn typed<T>(
        &self,
        read: impl FnOnce(&'a Value) -> Option<T>,
        kind: &'static str,
        message: &str,
    ) -> Option<T> {
        let typed = read(self.value?);
        if typed.is_none() {
            self.fault(kind, message);
        }
        typed
    }

    /// A text with a number of characters in a range.
    pub(crate) fn text(&self, length: RangeInclusive<usize>) -> Option<String> {
        let text = self.typed(Value::as_str, "string_type", "Input should be a valid string")?;
        let Some((end, bound)) = beyond(text.chars().count(), &length) else {
            return Some(text.into());
        };
        let kind = if end == "least" { "string_too_short" } else { "string_too_long" };
        self.fault(kind, format!("String should have at {end} {}", counted(bound, "character")));
        None
    }

    /// A text that is not blank, trimmed.
    pub(crate) fn solid_text(&self, most: usize) -> Option<String> {
        let text = self.text(0..=most)?.trim().to_owned();
        if text.is_empty() {
            self.fault("string_too_short", "String should have at least 1 character");
        }
        Some(text).filter(|text| !text.is_empty())
    }

    /// A name of letters, digits and these characters, at most so long.
    pub(crate) fn identifier(&self, most: usize, others: &str) -> Option<String> {
        let text = self.text(1..=most)?;
        if !text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c)) {
            let message = format!("String should match pattern '^[a-zA-Z0-9{others}]+$'");
            self.fault("string_pattern_mismatch", message);
        }
        Some(text)
    }

    /// The value of one of some words.
    pub(crate) fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let given = self.value?.as_str();
        let meant = words.iter().find(|(word, _)| given == Some(word));
        if meant.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let listed = words.join("', '");
            let listed = match listed.rsplit_once(", ") {
                Some((others, last)) => format!("'{others} or {last}'"),
                None => format!("'{listed}'"),
            };
            self.fault("literal_error", format!("Input should be {listed}"));
        }
        meant.map(|(_, meant)| *meant)
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        self.typed(Value::as_bool, "bool_type", "Input should be a valid boolean")
    }

    pub(crate) fn number(&self, within: RangeInclusive<f64>) -> Option<f64> {
        let number = self.typed(Value::as_f64, "float_type", "Input should be a valid number")?;
        self.within(number, within)
    }

    pub(crate) fn whole(&self, within: RangeInclusive<i64>) -> Option<i64> {
        let number = self.typed(Value::as_f64, "int_type", "Input should be a valid integer")?;
        if number.fract() != 0.0 {
            let message = "Input should be a valid integer, got a number with a fractional part";
            self.fault("int_from_float", message);
            return None;
        }
        let most = Some(*within.end()).filter(|most| *most < i64::MAX);
        #[expect(clippy::cast_precision_loss, reason = "limits are small, or none at all")]
        let within = *within.start() as f64..=most.map_or(f64::INFINITY, |most| most as f64);
        #[expect(clippy::cast_possible_truncation, reason = "one beyond the type is its limit")]
        self.within(number, within).map(|number| number as i64)
    }

    fn within(&self, number: f64, bounds: RangeInclusive<f64>) -> Option<f64> {
        let (least, most) = bounds.into_inner();
        if number < least {
            let message = format!("Input should be greater than or equal to {least}");
            self.fault("greater_than_equal", message);
        } else if number > most {
            self.fault("less_than_equal", format!("Input should be less than or equal to {most}"));
        } else {
            return Some(number);
        }
        None
    }

    pub(crate) fn object(&self) -> Option<Object<'a>> {
        Object::at(self.place(), self.value?, self.object.faults)
    }

    /// The members of an object; none if it is missing.
    pub(crate) fn map(&self) -> Map<String, Value> {
        let map = self.typed(Value::as_object, "dict_type", "Input should be a valid dictionary");
        map.cloned().unwrap_or_default()
    }

    /// The entries of a list with a length in a range; none if it is missing.
    pub(crate) fn entries(&self, count: RangeInclusive<usize>) -> Vec<Self> {
        let list = self.typed(Value::as_array, "list_type", "Input should be a valid list");
        let entries = list.map(Vec::as_slice).unwrap_or_default();
        if let Some((end, bound)) = list.and_then(|list| beyond(list.len(), &count)) {
            let kind = if end == "least" { "too_short" } else { "too_long" };
            let (items, has) = (counted(bound, "item"), entries.len());
            let message = format!("List should have at {end} {items} after validation, not {has}");
            self.fault(kind, message);
            return Vec::new();
        }
        let entry = |(n, value)| Self { value: Some(value), index: Some(n), ..*self };
        entries.iter().enumerate().map(entry).collect()
    }

    /// The objects of a list with at most so many, each read by a function.
    pub(crate) fn objects<T>(&self, most: usize, look: impl Fn(&Object<'a>) -> T) -> Vec<T> {
        let entries = self.entries(0..=most);
        entries.iter().filter_map(|entry| Some(look(&entry.object()?))).collect()
    }

    /// A list of texts that are not blank, without duplicates.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        let (mut seen, entries) = (HashSet::new(), self.entries(0..=ENTRIES_LIMIT));
        let names = entries.iter().filter_map(|entry| entry.solid_text(usize::MAX));
        let names = names.filter(|name| seen.insert(name.clone())).collect();
        self.value.map(|_| names)
    }

    /// The values of the words of a list, without duplicates.
    pub(crate) fn choices<T: Copy + PartialEq>(&self, words: &[(&str, T)]) -> Option<Vec<T>> {
        let mut chosen = Vec::new();
        for entry in self.entries(0..=ENTRIES_LIMIT) {
            chosen.extend(entry.choice(words).filter(|one| !chosen.contains(one)));
        }
        self.value.map(|_| chosen)
    }
}

/// The bound that a length exceeds, and which one it is.
fn beyond(length: usize, bounds: &RangeInclusive<usize>) -> Option<(&'static str, usize)> {
    let (least, most) = (*bounds.start(), *bounds.end());
    if length < least { Some(("least", least)) } else { (length > most).then_some(("most", most)) }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
