//! Reads JSON objects member by member and remembers everything that is wrong with them.
//!
//! Null stands for "not given". The words are those that clients of this protocol know.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use serde_json::{Map, Value};

/// What was found to be wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Faults(RefCell<Vec<Fault>>);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where, with dots between members.
    pub(crate) place: String,
    /// What.
    pub(crate) what: String,
}

/// Everything that is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Wrong(pub(crate) Vec<Fault>);

/// How much is remembered of what is wrong with one message.
const MOST_FAULTS: usize = 100;
/// The longest list that is looked at.
const MOST_ENTRIES: usize = 10_000;

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Fault { place, what }) in self.0.iter().enumerate() {
            let between = if n == 0 { "" } else { "; " };
            write!(f, "{between}{place}: {what}")?;
        }
        Ok(())
    }
}

impl Faults {
    /// Remembers one.
    pub(crate) fn add(&self, place: impl Into<String>, what: impl Into<String>) {
        let mut faults = self.0.borrow_mut();
        if faults.len() < MOST_FAULTS {
            faults.push(Fault { place: place.into(), what: what.into() });
        }
    }

    /// What was read, if nothing was wrong.
    pub(crate) fn unless<T>(self, read: T) -> Result<T, Wrong> {
        match self.0.into_inner() {
            faults if faults.is_empty() => Ok(read),
            faults => Err(Wrong(faults)),
        }
    }
}

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// An object, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    members: &'a Map<String, Value>,
    place: String,
    faults: &'a Faults,
}

impl<'a> Object<'a> {
    /// An object that stands somewhere.
    pub(crate) fn at(
        place: impl Into<String>,
        value: &'a Value,
        faults: &'a Faults,
    ) -> Option<Self> {
        let place = place.into();
        let Value::Object(members) = value else {
            faults.add(place, "Input should be a valid dictionary");
            return None;
        };
        Some(Self { members, place, faults })
    }

    /// The same object, of which somebody else remembers what is wrong, from here on.
    pub(crate) fn judged(&self, faults: &'a Faults) -> Self {
        Self { members: self.members, place: String::new(), faults }
    }

    /// The members as they are.
    pub(crate) fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    /// Remembers what is wrong with a member.
    pub(crate) fn wrong(&self, name: &str, what: impl Into<String>) {
        self.faults.add(self.place(name), what);
    }

    /// Takes no other members than these.
    pub(crate) fn only(&self, known: &[&str]) {
        for name in self.members.keys().filter(|name| !known.contains(&name.as_str())) {
            self.wrong(name, "Extra inputs are not permitted");
        }
    }

    /// A member, if it is given.
    pub(crate) fn member(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// A member that must be given.
    pub(crate) fn needed(&self, name: &str) -> Option<&'a Value> {
        let value = self.member(name);
        if value.is_none() {
            self.wrong(name, "Field required");
        }
        value
    }

    /// A text of so many characters.
    pub(crate) fn text(&self, name: &str, length: RangeInclusive<usize>) -> Option<String> {
        let value = self.member(name)?;
        self.read_text(&self.place(name), value, length)
    }

    /// A text that must be given.
    pub(crate) fn needed_text(&self, name: &str, length: RangeInclusive<usize>) -> Option<String> {
        self.needed(name).and_then(|_| self.text(name, length))
    }

    /// A text that must be given and say something, without blanks around it.
    pub(crate) fn solid_text(&self, name: &str, most: usize) -> Option<String> {
        let text = self.needed_text(name, 0..=most)?;
        let text = text.trim();
        if text.is_empty() {
            self.wrong(name, "String should have at least 1 character");
        }
        (!text.is_empty()).then(|| text.into())
    }

    /// A name that must be given: letters, digits and these.
    pub(crate) fn name(&self, name: &str, most: usize, others: &str) -> Option<String> {
        let text = self.needed_text(name, 1..=most)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
        if !text.chars().all(fits) {
            self.wrong(name, format!("String should match pattern '^[a-zA-Z0-9{others}]+$'"));
            return None;
        }
        Some(text)
    }

    /// One of some words.
    pub(crate) fn word(&self, name: &str, words: &[&'static str]) -> Option<&'static str> {
        let value = self.member(name)?;
        self.read_word(&self.place(name), value, words)
    }

    /// Yes or no.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.member(name)?;
        if !value.is_boolean() {
            self.wrong(name, "Input should be a valid boolean");
        }
        value.as_bool()
    }

    /// A whole number.
    pub(crate) fn whole(&self, name: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let Some(number) = self.member(name)?.as_i64() else {
            self.wrong(name, "Input should be a valid integer");
            return None;
        };
        let what = match () {
            () if number < *range.start() => {
                format!("Input should be greater than or equal to {}", range.start())
            }
            () if number > *range.end() => {
                format!("Input should be less than or equal to {}", range.end())
            }
            () => return Some(number),
        };
        self.wrong(name, what);
        None
    }

    /// An object.
    pub(crate) fn object(&self, name: &str) -> Option<Object<'a>> {
        Object::at(self.place(name), self.member(name)?, self.faults)
    }

    /// An object that may be left out, and is empty then.
    pub(crate) fn object_or_empty(&self, name: &str) -> Option<Object<'a>> {
        match self.member(name) {
            Some(value) => Object::at(self.place(name), value, self.faults),
            None => Some(Self { members: &EMPTY, place: self.place(name), faults: self.faults }),
        }
    }

    /// A list of objects; none if it is not given.
    pub(crate) fn objects(&self, name: &str) -> Vec<Object<'a>> {
        let entries = self.entries(name).unwrap_or_default().into_iter();
        entries.filter_map(|(place, value)| Object::at(place, value, self.faults)).collect()
    }

    /// A list of texts that say something, each once.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let mut seen = HashSet::new();
        let text = |(place, value): (String, &Value)| {
            let text = self.read_text(&place, value, 0..=usize::MAX)?;
            let text = text.trim();
            if text.is_empty() {
                self.faults.add(place, "String should have at least 1 character");
            }
            let fresh = !text.is_empty() && seen.insert(text.to_owned());
            fresh.then(|| text.to_owned())
        };
        Some(self.entries(name)?.into_iter().filter_map(text).collect())
    }

    /// A list of some words, each once.
    pub(crate) fn words(&self, name: &str, words: &[&'static str]) -> Option<Vec<&'static str>> {
        let mut seen = HashSet::new();
        let entries = self.entries(name)?.into_iter();
        let read = entries.filter_map(|(place, value)| self.read_word(&place, value, words));
        Some(read.filter(|word| seen.insert(*word)).collect())
    }

    /// The entries of a list, each with its place.
    pub(crate) fn entries(&self, name: &str) -> Option<Vec<(String, &'a Value)>> {
        let Value::Array(entries) = self.member(name)? else {
            self.wrong(name, "Input should be a valid list");
            return None;
        };
        let place = self.place(name);
        if entries.len() > MOST_ENTRIES {
            self.wrong(name, format!("List should have at most {MOST_ENTRIES} items"));
            return None;
        }
        Some(entries.iter().enumerate().map(|(n, value)| (format!("{place}.{n}"), value)).collect())
    }

    fn read_text(
        &self,
        place: &str,
        value: &Value,
        length: RangeInclusive<usize>,
    ) -> Option<String> {
        let Value::String(text) = value else {
            self.faults.add(place, "Input should be a valid string");
            return None;
        };
        let count = text.chars().count();
        let (end, limit) = match count < *length.start() {
            true => ("least", *length.start()),
            false if count > *length.end() => ("most", *length.end()),
            false => return Some(text.clone()),
        };
        let plural = if limit == 1 { "" } else { "s" };
        self.faults.add(place, format!("String should have at {end} {limit} character{plural}"));
        None
    }

    fn read_word(
        &self,
        place: &str,
        value: &Value,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let word = words.iter().find(|word| value.as_str() == Some(word)).copied();
        if word.is_none() {
            self.faults.add(place, format!("Input should be {}", one_of(words)));
        }
        word
    }

    fn place(&self, name: &str) -> String {
        if self.place.is_empty() { name.into() } else { format!("{}.{name}", self.place) }
    }
}

/// Words as a choice: `'a', 'b' or 'c'`.
pub(crate) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
