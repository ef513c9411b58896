//! Frames: how answers and notifications are written, in either framing.

use quintet_kernel::Time;
use serde_json::{Map, Value, json};

use crate::jsonrpc::{self, Error, Id};

/// No such session.
pub(super) const SESSION_NOT_FOUND: i64 = -32000;
/// A turn is under way.
pub(super) const BUSY: i64 = -32001;
/// The conversation is longer than the model can read.
pub(super) const CONTEXT_OVERFLOW: i64 = -32002;
// The original's frames have words for more errors than JSON-RPC has codes for. These stand for them
// until a frame is written; a JSON-RPC client is sent one of the specified codes, see `specified`.
/// No question waits for this answer.
pub(super) const NOTHING_PENDING: i64 = 1;
/// The original does this; it is not done here.
pub(super) const NOT_AVAILABLE: i64 = 2;
/// The file system refused.
pub(super) const FILESYSTEM_ERROR: i64 = 3;

/// How the frames of a connection are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Framing {
    /// JSON-RPC 2.0.
    #[default]
    JsonRpc,
    /// The frames of the original server: answers have `success`, notifications `type` and `data`.
    Legacy,
}

/// The answer to a request; none if it has no id.
pub(super) fn answer(
    framing: Framing,
    id: Option<&Id>,
    outcome: &Result<Value, Error>,
    now: Time,
) -> Option<String> {
    match framing {
        Framing::JsonRpc => Some(match outcome {
            Ok(_) => jsonrpc::response(id?, outcome),
            Err(error) => {
                let code = specified(error.code);
                jsonrpc::response(id?, &Err(Error { code, ..error.clone() }))
            }
        }),
        Framing::Legacy => Some(legacy_answer(id, outcome, now).to_string()),
    }
}

fn legacy_answer(id: Option<&Id>, outcome: &Result<Value, Error>, now: Time) -> Value {
    let asked = |code| ![jsonrpc::PARSE_ERROR, jsonrpc::INVALID_REQUEST].contains(&code);
    match (id, outcome) {
        (Some(Id::Text(id)), Ok(result)) => json!({ "id": id, "success": true, "result": result }),
        (Some(Id::Text(id)), Err(error)) if asked(error.code) => {
            let mut shown = json!({ "code": word(error.code), "message": error.message });
            if let Some(details) = &error.data {
                shown["details"] = details.clone();
            }
            json!({ "id": id, "success": false, "error": shown })
        }
        // The original answers only what is a request, and has a text for an id.
        (_, outcome) => {
            let (code, message) = match outcome {
                Err(error) if error.code == jsonrpc::PARSE_ERROR => {
                    ("PARSE_ERROR", &*error.message)
                }
                Err(error) => ("INVALID_FORMAT", &*error.message),
                Ok(_) => ("INVALID_FORMAT", "id must be a string"),
            };
            json!({
                "type": "system.error",
                "timestamp": now.to_rfc3339_millis(),
                "data": { "code": code, "message": message },
            })
        }
    }
}

/// The code of the specification for an error.
fn specified(code: i64) -> i64 {
    match code {
        NOTHING_PENDING | FILESYSTEM_ERROR => jsonrpc::INVALID_PARAMS,
        NOT_AVAILABLE => jsonrpc::METHOD_NOT_FOUND,
        code => code,
    }
}

/// The original server's word for a code.
fn word(code: i64) -> &'static str {
    match code {
        jsonrpc::PARSE_ERROR => "PARSE_ERROR",
        jsonrpc::INVALID_REQUEST => "INVALID_FORMAT",
        jsonrpc::METHOD_NOT_FOUND => "METHOD_NOT_FOUND",
        jsonrpc::INVALID_PARAMS => "INVALID_PARAMS",
        SESSION_NOT_FOUND => "SESSION_NOT_FOUND",
        BUSY => "SESSION_BUSY",
        CONTEXT_OVERFLOW => "CONTEXT_OVERFLOW",
        NOTHING_PENDING => "NOT_FOUND",
        NOT_AVAILABLE => "NOT_AVAILABLE",
        FILESYSTEM_ERROR => "FILESYSTEM_ERROR",
        _ => "INTERNAL_ERROR",
    }
}

/// The first frame of the original server; in both framings at once where that of a client is not known.
pub(super) fn greeting(framing: Option<Framing>, now: Time) -> Value {
    let name = "system.connected";
    let data = json!({ "clientId": format!("client_{:012x}", now.micros() & 0xffff_ffff_ffff) });
    let mut frame = json!({ "type": name, "timestamp": now.to_rfc3339_millis(), "data": data });
    if framing != Some(Framing::Legacy) {
        frame["jsonrpc"] = "2.0".into();
        frame["method"] = name.into();
        frame["params"] = data;
    }
    frame
}

/// Something that clients are sent unasked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Notification {
    /// The method, if JSON-RPC clients are sent it.
    pub(super) json_rpc: Option<&'static str>,
    /// The type, if legacy clients are sent it.
    pub(super) legacy: Option<&'static str>,
    /// The content, besides the session.
    pub(super) data: Value,
}

impl Notification {
    /// For all clients, by the same name.
    pub(super) fn both(name: &'static str, data: Value) -> Self {
        Self { json_rpc: Some(name), legacy: Some(name), data }
    }

    /// For JSON-RPC clients alone.
    pub(super) fn json_rpc(name: &'static str, data: Value) -> Self {
        Self { json_rpc: Some(name), legacy: None, data }
    }

    /// For legacy clients alone.
    pub(super) fn legacy(name: &'static str, data: Value) -> Self {
        Self { json_rpc: None, legacy: Some(name), data }
    }

    /// The frame, if a client with this framing is sent one.
    pub(super) fn frame(self, framing: Framing, session: Option<&str>, at: Time) -> Option<String> {
        match framing {
            Framing::JsonRpc => {
                let mut params = match self.data {
                    Value::Object(members) => members,
                    _ => Map::new(),
                };
                if let Some(session) = session {
                    params.insert("sessionId".into(), session.into());
                }
                Some(jsonrpc::notification(self.json_rpc?, Value::Object(params)))
            }
            Framing::Legacy => {
                let mut frame = json!({
                    "type": self.legacy?, "timestamp": at.to_rfc3339_millis(), "data": self.data,
                });
                if let Some(session) = session {
                    frame["sessionId"] = session.into();
                }
                Some(frame.to_string())
            }
        }
    }
}
