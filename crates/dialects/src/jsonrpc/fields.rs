//! Reads parameters by name. Unknown ones are ignored; an error names the parameter with the wrong type.

use serde_json::{Map, Value};

use super::Error;

/// The members of a parameter object. `null` means the same as leaving a member out.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    members: Option<&'a Map<String, Value>>,
    /// The names of the enclosing objects, outermost first.
    path: [&'a str; 2],
}

impl<'a> Fields<'a> {
    /// The members of `params`, which may be null. Fails if it is not an object.
    pub fn of(params: &'a Value) -> Result<Self, Error> {
        let path = ["", ""];
        match params {
            Value::Null => Ok(Self { members: None, path }),
            Value::Object(members) => Ok(Self { members: Some(members), path }),
            _ => Err(Error::field("params", "an object")),
        }
    }

    /// A string.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>, Error> {
        self.read(name, "a string", Value::as_str)
    }

    /// A required string.
    pub fn required_text(&self, name: &str) -> Result<&'a str, Error> {
        self.text(name)?.ok_or_else(|| self.invalid(name, "a string"))
    }

    /// True or false.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// A whole number that is not negative.
    pub fn unsigned(&self, name: &str) -> Result<Option<u64>, Error> {
        self.read(name, "a whole number", Value::as_u64)
    }

    /// A whole number, which may be negative.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Error> {
        self.read(name, "a whole number", Value::as_i64)
    }

    /// A number.
    pub fn number(&self, name: &str) -> Result<Option<f64>, Error> {
        self.read(name, "a number", Value::as_f64)
    }

    /// A member of any type.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.members.and_then(|members| members.get(name)).filter(|value| !value.is_null())
    }

    /// True if a member exists and is not null.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// An object; an empty one if it is missing.
    pub fn object(&self, name: &'a str) -> Result<Self, Error> {
        let members = self.read(name, "an object", Value::as_object)?;
        Ok(Self { members, path: self.object_path(name) })
    }

    /// The members of an object whose values are strings.
    pub fn text_map(&self, name: &'a str) -> Result<Option<Vec<(&'a str, &'a str)>>, Error> {
        let Some(members) = self.read(name, "an object", Value::as_object)? else {
            return Ok(None);
        };
        let inner = self.object(name)?;
        let pair = |(key, value): (&'a String, &'a Value)| match value.as_str() {
            Some(text) => Ok((key.as_str(), text)),
            None => Err(inner.invalid(key, "a string")),
        };
        members.iter().map(pair).collect::<Result<_, _>>().map(Some)
    }

    /// A list of strings.
    pub fn text_list(&self, name: &str) -> Result<Option<Vec<&'a str>>, Error> {
        let all = |value: &'a Value| {
            value.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()
        };
        self.read(name, "a list of strings", all)
    }

    /// A list of objects.
    pub fn objects(&self, name: &'a str) -> Result<Option<Vec<Self>>, Error> {
        let path = self.object_path(name);
        let one = |value: &'a Value| {
            let members = Some(value.as_object()?);
            Some(Self { members, path })
        };
        let all = |value: &'a Value| value.as_array()?.iter().map(one).collect::<Option<Vec<_>>>();
        self.read(name, "a list of objects", all)
    }

    /// The error for an invalid member.
    pub fn invalid(&self, name: &str, expected: &str) -> Error {
        let outer = self.path.iter().filter(|outer| !outer.is_empty());
        let path: String = outer.flat_map(|outer| [outer, "."]).chain([name]).collect();
        Error::field(&path, expected)
    }

    fn object_path(&self, name: &'a str) -> [&'a str; 2] {
        match self.path {
            ["", ""] => [name, ""],
            [outer, _] => [outer, name],
        }
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        match self.members.and_then(|members| members.get(name)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.invalid(name, expected)),
        }
    }
}
