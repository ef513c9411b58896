//! JSON-RPC 2.0 messages, for every dialect that uses them: requests, responses and errors.
//!
//! Pure: a transport hands in the text of a message and sends the text that comes back.

mod fields;

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value, json};

pub use fields::Fields;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The text is JSON but no request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method does not take these parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// The server is at fault.
pub const INTERNAL_ERROR: i64 = -32603;

/// A received message.
#[derive(Debug)]
pub enum Incoming {
    /// One request or notification.
    One(Received),
    /// Several, to be answered together; never none.
    Batch(Vec<Received>),
}

/// One request or notification, or why it is neither.
pub type Received = Result<Call, InvalidMessage>;

/// A request or, without an id, a notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The id that the response carries; `None` for a notification, which is never answered.
    pub id: Option<Id>,
    /// The name of the method.
    pub method: String,
    /// The parameters; [`Value::Null`] if there are none.
    pub params: Value,
}

/// The id of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Id {
    /// A number, returned unchanged.
    Number(Number),
    /// A string.
    Text(String),
    /// No id: the request could not be read that far.
    Null,
}

/// An invalid message, with the id for the error response.
#[derive(Clone, Debug, PartialEq)]
pub struct InvalidMessage {
    /// The id, as far as there is one.
    pub id: Id,
    /// The error to respond with.
    pub error: Error,
}

/// An error response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Error {
    /// For programs.
    pub code: i64,
    /// For people.
    pub message: String,
    /// Details for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Error {
    /// An error without details.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// With details.
    #[must_use]
    pub fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// A parameter is not what it should be.
    pub fn field(field: &str, expected: &str) -> Self {
        let message = format!("Invalid params: {field} must be {expected}");
        Self::new(INVALID_PARAMS, message).with(json!({ "field": field, "expected": expected }))
    }

    /// There is no such method.
    pub fn no_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    /// An error of a peer, as far as it can be read.
    fn of(value: &Value) -> Self {
        Self {
            code: value["code"].as_i64().unwrap_or(INTERNAL_ERROR),
            message: value["message"].as_str().unwrap_or_default().to_owned(),
            data: value.get("data").cloned(),
        }
    }

    /// A message that cannot be read.
    pub fn parse(why: impl std::fmt::Display) -> Self {
        Self::new(PARSE_ERROR, format!("Parse error: {why}"))
    }

    /// The error for valid JSON that is not a request.
    pub fn invalid(why: impl std::fmt::Display) -> Self {
        Self::new(INVALID_REQUEST, format!("Invalid Request: {why}"))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => text.serialize(serializer),
            Self::Null => serializer.serialize_none(),
        }
    }
}

impl Id {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::Number(number) => Some(Self::Number(number.clone())),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// The most requests of a batch.
pub const BATCH_LIMIT: usize = 50;

/// Reads a message. Fails with the error response if it is not JSON, or a batch that is empty or too
/// long.
pub fn read(text: &str) -> Result<Incoming, Error> {
    if !text.trim_start().starts_with('[') {
        let one = serde_json::from_str(text).map_err(Error::parse)?;
        return Ok(Incoming::One(call(one)));
    }
    match serde_json::from_str(text).map_err(Error::parse)? {
        Batch(calls) if calls.is_empty() => Err(Error::invalid("the batch is empty")),
        Batch(calls) if calls.len() > BATCH_LIMIT => {
            Err(Error::invalid(format!("a batch has at most {BATCH_LIMIT} requests")))
        }
        Batch(calls) => Ok(Incoming::Batch(calls.into_iter().map(call).collect())),
    }
}

/// The values of an array, read up to one beyond the limit.
struct Batch(Vec<Value>);

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Batch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Batch, A::Error> {
                let mut values = Vec::new();
                while values.len() <= BATCH_LIMIT
                    && let Some(value) = array.next_element()?
                {
                    values.push(value);
                }
                while array.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Batch(values))
            }
        }
        deserializer.deserialize_seq(Values)
    }
}

/// A message of a peer that both calls and is called.
#[derive(Debug)]
pub enum PeerMessage {
    /// A request or notification.
    Call(Call),
    /// The response to a request of the daemon.
    Answer {
        /// The id of our request.
        id: Id,
        /// The result, or why there is none.
        outcome: Result<Value, Error>,
    },
}

/// Reads a message of a peer, which must not be a batch. Fails with the error to respond with.
pub fn read_peer(text: &str) -> Result<PeerMessage, InvalidMessage> {
    let fault = |error| InvalidMessage { id: Id::Null, error };
    if text.trim_start().starts_with('[') {
        return Err(fault(Error::invalid("batches are not taken")));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| fault(Error::parse(error)))?;
    let answers = value.get("method").is_none() && value.get("jsonrpc") == Some(&"2.0".into());
    let id = value.get("id").and_then(Id::of);
    match (id, value.get("result"), value.get("error")) {
        (Some(id), Some(result), None) if answers => {
            Ok(PeerMessage::Answer { id, outcome: Ok(result.clone()) })
        }
        (Some(id), _, Some(error)) if answers => {
            Ok(PeerMessage::Answer { id, outcome: Err(Error::of(error)) })
        }
        _ => call(value).map(PeerMessage::Call),
    }
}

fn call(value: Value) -> Received {
    let Value::Object(mut members) = value else {
        let error = Error::invalid("a request is an object");
        return Err(InvalidMessage { id: Id::Null, error });
    };
    let id = members.get("id").map(Id::of);
    let known = id.clone().flatten().unwrap_or(Id::Null);
    let fault = |why: &str| InvalidMessage { id: known.clone(), error: Error::invalid(why) };
    if id == Some(None) {
        return Err(fault("id must be a string, a number or null"));
    }
    if members.get("jsonrpc") != Some(&Value::from("2.0")) {
        return Err(fault("jsonrpc must be \"2.0\""));
    }
    let Some(Value::String(method)) = members.remove("method") else {
        return Err(fault("method must be a string"));
    };
    // The method checks the type of the value.
    let params = members.remove("params").unwrap_or(Value::Null);
    Ok(Call { id: id.flatten(), method, params })
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Error>,
}

#[derive(Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: P,
}

/// A request of the daemon.
pub fn request(id: u64, method: &str, params: impl Serialize) -> String {
    text(&Request { jsonrpc: "2.0", id, method, params })
}

/// The answer to a request.
pub fn response(id: &Id, outcome: &Result<Value, Error>) -> String {
    let (result, error) = (outcome.as_ref().ok(), outcome.as_ref().err());
    text(&Response { jsonrpc: "2.0", id, result, error })
}

/// A notification.
pub fn notification(method: &str, params: impl Serialize) -> String {
    text(&Notification { jsonrpc: "2.0", method, params })
}

/// The answers to a batch, of which notifications have none; `None` if there are none at all.
pub fn batch_response(answers: &[String]) -> Option<String> {
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}

fn text(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("messages have string keys")
}

#[cfg(test)]
mod tests;
