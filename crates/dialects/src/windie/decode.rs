//! Decodes messages of clients: the handshake, then one message after the other.

use serde_json::Value;

use super::fields::{Object, read};
use super::wire::agent_definition::{Definition, LONGEST_PATH};
use super::wire::query::Query;
use super::wire::rehydrate::Rehydrate;
use super::wire::tool_results::{BundleResult, ToolResult};
use super::wire::user_settings::Patch;
use super::wire::{Answer, Context, LARGEST_MESSAGE};

const LONGEST_ID: usize = 128;
pub(crate) const LONGEST_REF: usize = 1024;
const LONGEST_VERSION: usize = 128;
/// The user id that original clients send if they were given none.
const NOBODY: &str = "default_user";

/// What an envelope may have in it.
const MEMBERS: [&str; 10] = [
    "id",
    "type",
    "payload",
    "user_id",
    "session_id",
    "conversation_ref",
    "turn_ref",
    "event_id",
    "sequence",
    "timestamp",
];

const TYPES: [&str; 10] = [
    "query",
    "stop-query",
    "rehydrate-conversation",
    "load-settings",
    "update-settings",
    "list-models",
    "tool-result",
    "tool-bundle-result",
    "wakeword-detected",
    "compact-history",
];

/// What a client says first.
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

/// What a message asks for.
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

/// Reads the first message. Any other message closes the connection; the reason is for the log.
pub(crate) fn handshake(frame: &str) -> Result<Handshake, String> {
    let value = json(frame)?;
    if !value.is_object() {
        return Err("the handshake is not an object".into());
    }
    let handshake = |object: &Object<'_>| {
        object.only(&["type", "user_id", "agent_definition", repeated(&value)]);
        object.needed("type").choice(&[("handshake", ())]);
        let user = object.needed("user_id").solid_text(LONGEST_REF).unwrap_or_default();
        if user == NOBODY {
            object.wrong("user_id", "default_user is nobody");
        }
        let definition = object.object("agent_definition").map(|object| Definition::of(&object));
        Handshake { user, definition }
    };
    read("handshake", &value, handshake).map_err(|wrong| wrong.to_string())
}

/// A member that is taken although handshakes do not have it any more: the original Python client says
/// once more which system its agent runs on. Where it says something of its own it is refused.
fn repeated(handshake: &Value) -> &'static str {
    let said = &handshake["operating_system"];
    if said.is_string() && *said == handshake["agent_definition"]["runtime"]["operating_system"] {
        "operating_system"
    } else {
        "type"
    }
}

pub(crate) fn decode(frame: &str) -> Result<Message, Box<Answer>> {
    let value = json(frame).map_err(|wrong| Box::new(Answer::error(None, &wrong)))?;
    if !value.is_object() {
        let kind = python_name(&value);
        let wrong = format!("Invalid message format: root must be an object, got {kind}");
        return Err(Box::new(Answer::error(None, &wrong)));
    }
    match read("", &value, message) {
        Ok(Some(read)) => read,
        Ok(None) => unreachable!("an envelope that is not read has a fault"),
        Err(wrong) => {
            Err(Box::new(Answer::error(None, &format!("Invalid message format: {wrong}"))))
        }
    }
}

fn json(frame: &str) -> Result<Value, String> {
    if frame.len() > LARGEST_MESSAGE {
        let length = frame.len();
        return Err(format!("Message too large: {length} bytes (max: {LARGEST_MESSAGE} bytes)"));
    }
    serde_json::from_str(frame).map_err(|_| "Malformed JSON".into())
}

/// What clients of this protocol call a value that is no object.
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

/// Reads an envelope; nothing if it is not known what it asks for. A fault of what is inside, and not of
/// its shape, comes back as the answer.
fn message(envelope: &Object<'_>) -> Option<Result<Message, Box<Answer>>> {
    envelope.only(&MEMBERS);
    let id = envelope.needed("id").identifier(LONGEST_ID, "_-").unwrap_or_default();
    for name in ["user_id", "session_id", "conversation_ref", "turn_ref", "event_id"] {
        envelope.text(name, 0..=usize::MAX);
    }
    envelope.field("sequence").whole(i64::MIN..=i64::MAX);
    let kind = envelope.needed("type").choice(&TYPES.map(|word| (word, word)))?;
    let payload = envelope.object_or_empty("payload")?;
    Some(match asks(kind, &payload) {
        Ok(asks) => Ok(Message { id, asks }),
        Err(wrong) => {
            let answer = Answer::error(Some(&id), &wrong);
            let conversation_ref = payload.member("conversation_ref").and_then(Value::as_str);
            let context = Context {
                conversation_ref: conversation_ref.map(|name| name.trim().to_owned()),
                turn_ref: (kind == "query").then_some(id),
                ..Context::default()
            };
            Err(Box::new(answer.about(context)))
        }
    })
}

fn asks(kind: &str, payload: &Object<'_>) -> Result<Asks, String> {
    Ok(match kind {
        "query" => Asks::Query(Box::new(Query::of(payload)?)),
        "stop-query" => Asks::Stop {
            conversation: reference(payload, "conversation_ref"),
            turn: reference(payload, "turn_ref"),
        },
        "rehydrate-conversation" => Asks::Rehydrate(Rehydrate::of(payload)),
        "load-settings" => {
            payload.text("client_version", 1..=LONGEST_VERSION);
            Asks::LoadSettings
        }
        "update-settings" => match Patch::of(payload) {
            Ok(patch) => Asks::UpdateSettings(Box::new(patch)),
            Err(wrong) => return Err(format!("Invalid settings: Invalid settings patch: {wrong}")),
        },
        "list-models" => Asks::ListModels,
        "tool-result" => Asks::ToolResult(ToolResult::of(payload)),
        "tool-bundle-result" => Asks::BundleResult(BundleResult::of(payload)),
        "wakeword-detected" => Asks::Wakeword,
        _ => Asks::Compact {
            force: payload.field("force").flag().unwrap_or(true),
            conversation: reference(payload, "conversation_ref"),
        },
    })
}

/// A client's name for something, where it gives one.
fn reference(payload: &Object<'_>, name: &str) -> Option<String> {
    let text = payload.text(name, 0..=LONGEST_REF)?.trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// The folder that a message is about.
pub(crate) fn workspace(payload: &Object<'_>) -> Option<String> {
    payload.text("workspace_path", 0..=LONGEST_PATH).filter(|path| !path.trim().is_empty())
}

#[cfg(test)]
mod tests;
