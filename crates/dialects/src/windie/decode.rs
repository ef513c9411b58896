//! Decodes messages of clients: the handshake, then one message after the other.

use serde_json::Value;

use super::fields::{Object, read};
use super::wire::agent_definition::{Definition, PATH_LIMIT};
use super::wire::query::Query;
use super::wire::rehydrate::Rehydrate;
use super::wire::tool_results::{BundleResult, ToolResult};
use super::wire::user_settings::Patch;
use super::wire::{Answer, Context, LARGEST_MESSAGE};

const ID_LIMIT: usize = 128;
pub(crate) const REF_LIMIT: usize = 1024;
const VERSION_LIMIT: usize = 128;
/// The user id that original clients send if they have none.
const DEFAULT_USER: &str = "default_user";

/// The members of an envelope.
const MEMBERS: &str =
    "id type payload user_id session_id conversation_ref turn_ref event_id sequence timestamp";

/// Reads the payload of a message. Fails with an error about its content; errors about its form are
/// collected with those of the envelope.
type PayloadReader = fn(&Object<'_>) -> Result<Asks, String>;

/// The types of messages.
const TYPES: [(&str, PayloadReader); 10] = [
    ("query", |payload| Ok(Asks::Query(Box::new(Query::of(payload)?)))),
    ("stop-query", |payload| {
        let conversation = reference(payload, "conversation_ref");
        Ok(Asks::Stop { conversation, turn: reference(payload, "turn_ref") })
    }),
    ("rehydrate-conversation", |payload| Ok(Asks::Rehydrate(Rehydrate::of(payload)))),
    ("load-settings", |payload| {
        payload.text("client_version", 1..=VERSION_LIMIT);
        Ok(Asks::LoadSettings)
    }),
    ("update-settings", |payload| match Patch::of(payload) {
        Ok(patch) => Ok(Asks::UpdateSettings(Box::new(patch))),
        Err(wrong) => Err(format!("Invalid settings: Invalid settings patch: {wrong}")),
    }),
    ("list-models", |_| Ok(Asks::ListModels)),
    ("tool-result", |payload| Ok(Asks::ToolResult(ToolResult::of(payload)))),
    ("tool-bundle-result", |payload| Ok(Asks::BundleResult(BundleResult::of(payload)))),
    ("wakeword-detected", |_| Ok(Asks::Wakeword)),
    ("compact-history", |payload| {
        let force = payload.field("force").flag().unwrap_or(true);
        Ok(Asks::Compact { force, conversation: reference(payload, "conversation_ref") })
    }),
];

/// The first message of a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Handshake {
    /// The claimed user id.
    pub(crate) user: String,
    pub(crate) definition: Option<Definition>,
}

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) asks: Asks,
}

/// The request in a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asks {
    Query(Box<Query>),
    Stop { conversation: Option<String>, turn: Option<String> },
    Rehydrate(Rehydrate),
    LoadSettings,
    UpdateSettings(Box<Patch>),
    ListModels,
    ToolResult(ToolResult),
    BundleResult(BundleResult),
    Wakeword,
    Compact { force: bool, conversation: Option<String> },
}

/// Reads the handshake. Fails with a reason for the log; the connection is then closed.
pub(crate) fn handshake(frame: &str) -> Result<Handshake, String> {
    let value = json(frame)?;
    if !value.is_object() {
        return Err("the handshake is not an object".into());
    }
    let handshake = |object: &Object<'_>| {
        object.only(handshake_members(&value));
        object.needed("type").choice(&[("handshake", ())]);
        let user = object.needed("user_id").solid_text(REF_LIMIT).unwrap_or_default();
        if user == DEFAULT_USER {
            object.wrong("user_id", "default_user is nobody");
        }
        let definition = object.object("agent_definition").map(|object| Definition::of(&object));
        Handshake { user, definition }
    };
    read("handshake", &value, handshake).map_err(|wrong| wrong.to_string())
}

/// The members of a handshake. The original Python client repeats the operating system of its definition,
/// which is accepted; any other value is refused.
fn handshake_members(handshake: &Value) -> &'static str {
    let system = &handshake["operating_system"];
    let defined = &handshake["agent_definition"]["runtime"]["operating_system"];
    if system.is_string() && system == defined {
        "type user_id agent_definition operating_system"
    } else {
        "type user_id agent_definition"
    }
}

pub(crate) fn decode(frame: &str) -> Result<Message, Box<Answer>> {
    let refuse = |message: &str| Box::new(Answer::error(None, message));
    let value = json(frame).map_err(|wrong| refuse(&wrong))?;
    if !value.is_object() {
        let kind = python_name(&value);
        let wrong = format!("Invalid message format: root must be an object, got {kind}");
        return Err(refuse(&wrong));
    }
    match read("", &value, message) {
        Ok(Some(read)) => read,
        Ok(None) => unreachable!("an envelope that is not read has a fault"),
        Err(wrong) => Err(refuse(&format!("Invalid message format: {wrong}"))),
    }
}

fn json(frame: &str) -> Result<Value, String> {
    if frame.len() > LARGEST_MESSAGE {
        let length = frame.len();
        return Err(format!("Message too large: {length} bytes (max: {LARGEST_MESSAGE} bytes)"));
    }
    serde_json::from_str(frame).map_err(|_| "Malformed JSON".into())
}

/// The name of a type in the original's error messages.
fn python_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// Reads an envelope; `None` if its type is unknown. An error about the content of the payload becomes an
/// answer with its context.
fn message(envelope: &Object<'_>) -> Option<Result<Message, Box<Answer>>> {
    envelope.only(MEMBERS);
    let id = envelope.needed("id").identifier(ID_LIMIT, "_-").unwrap_or_default();
    for name in ["user_id", "session_id", "conversation_ref", "turn_ref", "event_id"] {
        envelope.text(name, 0..=usize::MAX);
    }
    envelope.field("sequence").whole(i64::MIN..=i64::MAX);
    let read_payload = envelope.needed("type").choice(&TYPES)?;
    let payload = envelope.object_or_empty("payload")?;
    let wrong = match read_payload(&payload) {
        Ok(asks) => return Some(Ok(Message { id, asks })),
        Err(wrong) => wrong,
    };
    let answer = Answer::error(Some(&id), &wrong);
    let is_query = envelope.member("type").is_some_and(|kind| kind == "query");
    let conversation_ref = payload.member("conversation_ref").and_then(Value::as_str);
    let context = Context {
        conversation_ref: conversation_ref.map(|name| name.trim().to_owned()),
        turn_ref: is_query.then_some(id),
        ..Context::default()
    };
    Some(Err(Box::new(answer.about(context))))
}

/// A client's name or id of something, if it is not blank.
fn reference(payload: &Object<'_>, name: &str) -> Option<String> {
    let text = payload.text(name, 0..=REF_LIMIT)?.trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// The folder that a message names.
pub(crate) fn workspace(payload: &Object<'_>) -> Option<String> {
    payload.text("workspace_path", 0..=PATH_LIMIT).filter(|path| !path.trim().is_empty())
}

#[cfg(test)]
mod tests;
