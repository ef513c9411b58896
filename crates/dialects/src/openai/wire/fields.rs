//! Reads the fields of a request. Errors name the parameter; unknown fields are ignored, and null counts as
//! missing.

use serde_json::{Map, Value};

use crate::openai::reply::Reply;

/// An object of a request, and its path.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    /// The body of a request.
    pub(crate) fn body(value: &'a Value) -> Result<Self, Reply> {
        match value {
            Value::Object(object) => Ok(Self { object, path: String::new() }),
            other => {
                let given = Reply::invalid_type("body".into(), "a JSON object", other);
                Err(Reply { param: None, ..given })
            }
        }
    }

    /// An object inside a request.
    pub(crate) fn inside(value: &'a Value, path: String) -> Result<Self, Reply> {
        match value {
            Value::Object(object) => Ok(Self { object, path }),
            other => Err(Reply::invalid_type(path, "an object", other)),
        }
    }

    /// The full name of a field.
    pub(crate) fn param(&self, name: &str) -> String {
        if self.path.is_empty() { name.into() } else { format!("{}.{name}", self.path) }
    }

    /// A field that exists and is not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// The original object.
    pub(crate) fn raw(&self) -> &'a Map<String, Value> {
        self.object
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Reply> {
        self.typed(name, "a string", Value::as_str)
    }

    /// A required text.
    pub(crate) fn required_text(&self, name: &str) -> Result<&'a str, Reply> {
        self.text(name)?.ok_or_else(|| Reply::missing(self.param(name)))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Reply> {
        self.typed(name, "a boolean", Value::as_bool)
    }

    /// A whole number of at least 1.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, Reply> {
        let count = self.typed(name, "an integer", Value::as_u64)?;
        match count {
            Some(0) => Err(Reply::invalid_value(
                self.param(name),
                format!("Invalid '{}': must be at least 1.", self.param(name)),
            )),
            count => Ok(count),
        }
    }

    /// A number in a range.
    pub(crate) fn number(&self, name: &str, least: f64, most: f64) -> Result<Option<f64>, Reply> {
        let number = self.typed(name, "a number", Value::as_f64)?;
        match number {
            Some(number) if !(least..=most).contains(&number) => {
                let param = self.param(name);
                let why = format!("Invalid '{param}': must be between {least} and {most}.");
                Err(Reply::invalid_value(param, why))
            }
            number => Ok(number),
        }
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, Reply> {
        self.typed(name, "an array", |value| value.as_array().map(Vec::as_slice))
    }

    /// An object inside this one.
    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields<'a>>, Reply> {
        let Some(value) = self.get(name) else { return Ok(None) };
        Fields::inside(value, self.param(name)).map(Some)
    }

    /// The objects of a list, each with its path.
    pub(crate) fn objects(&self, name: &str) -> Result<Option<Vec<Fields<'a>>>, Reply> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let path = self.param(name);
        let object = |(n, value)| Fields::inside(value, format!("{path}[{n}]"));
        list.iter().enumerate().map(object).collect::<Result<_, _>>().map(Some)
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Reply> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(Reply::invalid_type(self.param(name), expected, value)),
        }
    }
}
