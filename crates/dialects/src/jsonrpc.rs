//! JSON-RPC 2.0 messages, for every dialect that uses them: requests, responses and errors.
//!
//! Pure: a transport passes in the text of a message and sends the text that is returned.

mod fields;

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value, json};

pub use fields::Fields;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The text is JSON but not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid.
pub const INVALID_PARAMS: i64 = -32602;
/// The request failed in the server.
pub const INTERNAL_ERROR: i64 = -32603;

/// A received message.
#[derive(Debug)]
pub enum Incoming {
    /// One request or notification.
    One(Received),
    /// Several requests with one response; never empty.
    Batch(Vec<Received>),
}

/// A request or notification, or the error for an invalid one.
pub type Received = Result<Call, InvalidMessage>;

/// A request or, without an id, a notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The id for the response; `None` for a notification, which has no response.
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
    /// The id is null, or the request could not be parsed.
    Null,
}

/// An invalid message, with the id for the error response.
#[derive(Clone, Debug, PartialEq)]
pub struct InvalidMessage {
    /// The id of the message, or null.
    pub id: Id,
    /// The error to respond with.
    pub error: Error,
}

/// An error response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Error {
    /// The error code, for programs.
    pub code: i64,
    /// The message, for people.
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

    /// Adds details.
    #[must_use]
    pub fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// The error for an invalid parameter.
    pub fn field(field: &str, expected: &str) -> Self {
        let message = format!("Invalid params: {field} must be {expected}");
        Self::new(INVALID_PARAMS, message).with(json!({ "field": field, "expected": expected }))
    }

    /// The error for an unknown method.
    pub fn no_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    /// Parses an error of a peer, leniently.
    fn of(value: &Value) -> Self {
        Self {
            code: value["code"].as_i64().unwrap_or(INTERNAL_ERROR),
            message: value["message"].as_str().unwrap_or_default().to_owned(),
            data: value.get("data").cloned(),
        }
    }

    /// The error for a message that is not JSON.
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

/// The most requests in a batch.
pub const BATCH_LIMIT: usize = 50;

/// Parses a message. Fails with the error to respond with if it is not JSON, or a batch that is empty or
/// too long.
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

/// The values of an array, up to one more than the limit.
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

/// A message of a peer that sends requests and also receives them.
#[derive(Debug)]
pub enum PeerMessage {
    /// A request or notification.
    Call(Call),
    /// The response to a request of the daemon.
    Response {
        /// The id of the daemon's request.
        id: Id,
        /// The result, or the error.
        outcome: Result<Value, Error>,
    },
}

/// Parses a message of a peer, which must not be a batch. Fails with the error to respond with.
pub fn read_peer(text: &str) -> Result<PeerMessage, InvalidMessage> {
    let fault = |error| InvalidMessage { id: Id::Null, error };
    if text.trim_start().starts_with('[') {
        return Err(fault(Error::invalid("batches are not supported")));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| fault(Error::parse(error)))?;
    let is_response = value.get("method").is_none() && value.get("jsonrpc") == Some(&"2.0".into());
    let id = value.get("id").and_then(Id::of);
    match (id, value.get("result"), value.get("error")) {
        (Some(id), Some(result), None) if is_response => {
            Ok(PeerMessage::Response { id, outcome: Ok(result.clone()) })
        }
        (Some(id), _, Some(error)) if is_response => {
            Ok(PeerMessage::Response { id, outcome: Err(Error::of(error)) })
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
    // Each method checks the type of its parameters.
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

/// Encodes a request of the daemon.
pub fn request(id: u64, method: &str, params: impl Serialize) -> String {
    text(&Request { jsonrpc: "2.0", id, method, params })
}

/// Encodes the response to a request.
pub fn response(id: &Id, outcome: &Result<Value, Error>) -> String {
    let (result, error) = (outcome.as_ref().ok(), outcome.as_ref().err());
    text(&Response { jsonrpc: "2.0", id, result, error })
}

/// Encodes a notification.
pub fn notification(method: &str, params: impl Serialize) -> String {
    text(&Notification { jsonrpc: "2.0", method, params })
}

/// Encodes the responses to a batch; `None` if there are none, because it had only notifications.
pub fn batch_response(responses: &[String]) -> Option<String> {
    (!responses.is_empty()).then(|| format!("[{}]", responses.join(",")))
}

fn text(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("messages have string keys")
}

#[cfg(test)]
mod tests;
