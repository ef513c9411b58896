//! Questions that a running call asks the user, and what counts as an answer.
//!
//! A question is a form of plain fields or a link to open. The form is a JSON Schema without
//! nesting: strings, numbers, booleans, one of several choices, or some of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tool::{Assessment, CallSubject, Risk};

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The program that asks, for people.
    pub asker: String,
    /// The text of the question.
    pub message: String,
    /// How it is answered.
    #[serde(flatten)]
    pub form: QuestionForm,
}

/// How a question is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionForm {
    /// With an object that fits this schema, whose properties are plain values.
    Schema(Value),
    /// By opening this address.
    Url(String),
}

/// An answer that can be chosen without writing anything.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionChoice {
    /// The label for people.
    pub label: String,
    /// The content of the answer.
    pub content: Value,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAnswer {
    /// The user answered; `content` fits the schema, and is empty for a link.
    Accepted { content: Map<String, Value> },
    /// The user declined, or the question expired.
    Declined,
    /// The question was closed before it was answered.
    Cancelled,
}

impl Question {
    /// The question as the arguments of an approval request, for clients that only show those.
    pub fn as_input(&self) -> Value {
        serde_json::to_value(self).expect("a question has string keys")
    }

    /// Parses what [`Question::as_input`] wrote.
    pub fn from_input(input: &Value) -> Option<Self> {
        serde_json::from_value(input.clone()).ok()
    }

    /// The question as the assessment of an approval request.
    pub fn assessment(&self) -> Assessment {
        let lines = match &self.form {
            QuestionForm::Schema(schema) => fields(schema).map(Field::describe).collect(),
            QuestionForm::Url(url) => vec![url.clone()],
        };
        Assessment {
            risk: Risk::Low,
            reasons: vec![format!("{} asks", self.asker)],
            reversible: false,
            preview: std::iter::once(self.message.clone())
                .chain(lines)
                .collect::<Vec<_>>()
                .join("\n"),
            subject: CallSubject::default(),
            settled: None,
        }
    }

    /// The answers to choose from: the values of the only field, or a plain yes if no value is
    /// needed; none if the user has to type something.
    pub fn choices(&self) -> Vec<QuestionChoice> {
        if let QuestionForm::Schema(schema) = &self.form
            && let Some(field) = only_field(schema)
            && let Some(values) = field.labelled_values()
        {
            let choice = |(label, value): (String, Value)| {
                let content = Map::from_iter([(field.name.to_owned(), value)]).into();
                QuestionChoice { label, content }
            };
            return values.into_iter().map(choice).collect();
        }
        let accepted = self.accept(None).is_ok();
        let yes = QuestionChoice { label: "Accept".into(), content: Map::new().into() };
        accepted.then_some(yes).into_iter().collect()
    }

    /// The content that a text stands for: one of the choices, an object in JSON, or the value of
    /// the only field.
    pub fn content_of(&self, text: &str) -> Option<Value> {
        let named = |choice: &QuestionChoice| choice.label.eq_ignore_ascii_case(text.trim());
        if let Some(choice) = self.choices().into_iter().find(named) {
            return Some(choice.content);
        }
        let written: Option<Value> = serde_json::from_str(text).ok();
        if let Some(Value::Object(content)) = written {
            return Some(content.into());
        }
        let QuestionForm::Schema(schema) = &self.form else { return None };
        let field = only_field(schema)?;
        let value = match field.schema["type"].as_str() {
            Some("string") => text.into(),
            _ => written?,
        };
        Some(Map::from_iter([(field.name.to_owned(), value)]).into())
    }

    /// Checks an answer and adds the defaults of missing fields. Fails with the reason if the
    /// answer does not fit.
    pub fn accept(&self, content: Option<Value>) -> Result<QuestionAnswer, String> {
        let QuestionForm::Schema(schema) = &self.form else {
            return Ok(QuestionAnswer::Accepted { content: Map::new() });
        };
        let mut content = match content {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(content)) => content,
            Some(_) => return Err("the answer must be an object".into()),
        };
        if let Some(unknown) = content.keys().find(|name| schema["properties"].get(name).is_none())
        {
            return Err(format!("`{unknown}` is not asked for"));
        }
        for field in fields(schema) {
            match (content.get(field.name), field.schema.get("default")) {
                (Some(value), _) => field.check(value)?,
                (None, Some(default)) => {
                    content.insert(field.name.into(), default.clone());
                }
                (None, None) if field.required => {
                    return Err(format!("`{}` needs a value", field.name));
                }
                (None, None) => {}
            }
        }
        Ok(QuestionAnswer::Accepted { content })
    }
}

/// One property of a schema.
struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

fn fields(schema: &Value) -> impl Iterator<Item = Field<'_>> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, property)| {
        let mut required = schema["required"].as_array().into_iter().flatten();
        let required = required.any(|required| required == name.as_str());
        Field { name, schema: property, required }
    })
}

fn only_field(schema: &Value) -> Option<Field<'_>> {
    let mut fields = fields(schema);
    fields.next().filter(|_| fields.next().is_none())
}

impl Field<'_> {
    /// The values to choose from with their labels, if there are some.
    fn labelled_values(&self) -> Option<Vec<(String, Value)>> {
        if self.schema["type"] == "boolean" {
            return Some(vec![("Yes".into(), true.into()), ("No".into(), false.into())]);
        }
        let titles = ["oneOf", "anyOf"].into_iter().find_map(|key| self.schema[key].as_array());
        let title = |n: usize| match titles {
            Some(titled) => titled[n]["title"].as_str(),
            None => self.schema["enumNames"][n].as_str(),
        };
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), Into::into);
        let label = |(n, value): (usize, &Value)| {
            (title(n).map_or_else(|| plain(value), Into::into), value.clone())
        };
        Some(choices(self.schema)?.into_iter().enumerate().map(label).collect())
    }

    /// One line for people: the name, what it means and what may be chosen.
    fn describe(self) -> String {
        let text = |key: &str| self.schema[key].as_str();
        let about = text("description").or_else(|| text("title"));
        let about = about.map(|about| format!(": {about}")).unwrap_or_default();
        let kind = match choices(self.schema).or_else(|| choices(&self.schema["items"])) {
            Some(choices) => {
                choices.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
            }
            None => text("type").unwrap_or("any").to_owned(),
        };
        let needed = if self.required { "" } else { ", optional" };
        format!("{}{about} ({kind}{needed})", self.name)
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        let wrong = |what: String| Err(format!("`{}` must be {what}", self.name));
        if let Some(choices) = choices(self.schema).filter(|choices| !choices.contains(&value)) {
            return wrong(one_of(&choices));
        }
        match self.schema["type"].as_str().unwrap_or_default() {
            "string" => match value.as_str() {
                Some(text) => self.check_range(text.chars().count() as f64, "Length", "characters"),
                None => wrong("text".into()),
            },
            "integer" if !is_integer(value) => wrong("a whole number".into()),
            "integer" | "number" => match value.as_f64() {
                Some(number) => self.check_range(number, "imum", "in value"),
                None => wrong("a number".into()),
            },
            "boolean" if !value.is_boolean() => wrong("true or false".into()),
            "array" => match value.as_array() {
                Some(items) => self.check_items(items),
                None => wrong("a list".into()),
            },
            _ => Ok(()),
        }
    }

    fn check_items(&self, items: &[Value]) -> Result<(), String> {
        let choices = choices(&self.schema["items"]).unwrap_or_default();
        match items.iter().find(|item| !choices.is_empty() && !choices.contains(item)) {
            Some(_) => Err(format!("each of `{}` must be {}", self.name, one_of(&choices))),
            None => self.check_range(items.len() as f64, "Items", "in number"),
        }
    }

    /// Checks the limits that the schema names `min…` and `max…`.
    fn check_range(&self, size: f64, limit: &str, unit: &str) -> Result<(), String> {
        let bound = |edge: &str| self.schema[format!("{edge}{limit}")].as_f64();
        match (bound("min"), bound("max")) {
            (Some(least), _) if size < least => {
                Err(format!("`{}` must be at least {least} {unit}", self.name))
            }
            (_, Some(most)) if size > most => {
                Err(format!("`{}` must be at most {most} {unit}", self.name))
            }
            _ => Ok(()),
        }
    }
}

/// The values that a schema allows to choose from, if it lists them.
fn choices(schema: &Value) -> Option<Vec<&Value>> {
    let plain = schema["enum"].as_array().map(|values| values.iter().collect());
    let titled = || {
        let titled = ["oneOf", "anyOf"].into_iter().find_map(|key| schema[key].as_array())?;
        Some(titled.iter().map(|choice| &choice["const"]).collect())
    };
    plain.or_else(titled)
}

fn one_of(choices: &[&Value]) -> String {
    let choices: Vec<_> = choices.iter().map(ToString::to_string).collect();
    format!("one of {}", choices.join(", "))
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

#[cfg(test)]
mod tests;
