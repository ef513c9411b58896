//! Frames: responses and notifications in both framings.

use quintet_kernel::Time;
use serde_json::{Map, Value, json};

use crate::jsonrpc::{self, Error, Id};

/// The session does not exist.
pub(super) const SESSION_NOT_FOUND: i64 = -32000;
/// The session has an open turn.
pub(super) const BUSY: i64 = -32001;
/// The conversation does not fit the model's context window.
pub(super) const CONTEXT_OVERFLOW: i64 = -32002;
// The original has more error codes than the specification. These values stand for them until a frame is
// encoded; a JSON-RPC client is sent a specified code instead, see `specified`.
/// No question waits for this answer.
pub(super) const NOTHING_PENDING: i64 = 1;
/// The original server has this method; it is not available here.
pub(super) const NOT_AVAILABLE: i64 = 2;
/// A file operation failed.
pub(super) const FILESYSTEM_ERROR: i64 = 3;

/// The format of a connection's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Framing {
    /// JSON-RPC 2.0.
    #[default]
    JsonRpc,
    /// The frames of the original server: responses have `success`, notifications `type` and `data`.
    Legacy,
}

/// The response to a request; `None` if the request has no id.
pub(super) fn response(
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
        Framing::Legacy => Some(legacy_response(id, outcome, now).to_string()),
    }
}

fn legacy_response(id: Option<&Id>, outcome: &Result<Value, Error>, now: Time) -> Value {
    let is_request = |code| ![jsonrpc::PARSE_ERROR, jsonrpc::INVALID_REQUEST].contains(&code);
    match (id, outcome) {
        (Some(Id::Text(id)), Ok(result)) => json!({ "id": id, "success": true, "result": result }),
        (Some(Id::Text(id)), Err(error)) if is_request(error.code) => {
            let mut shown = json!({ "code": code_name(error.code), "message": error.message });
            if let Some(details) = &error.data {
                shown["details"] = details.clone();
            }
            json!({ "id": id, "success": false, "error": shown })
        }
        // The original responds only to valid requests whose id is a string.
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

/// The original server's name for a code.
fn code_name(code: i64) -> &'static str {
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

/// The first frame of the original server; in both framings at once if the client's framing is not known.
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

/// A notification, with its names in both framings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Notification {
    /// The method; `None` if JSON-RPC clients are not sent it.
    pub(super) json_rpc: Option<&'static str>,
    /// The type; `None` if legacy clients are not sent it.
    pub(super) legacy: Option<&'static str>,
    /// The content, without the session.
    pub(super) data: Value,
}

impl Notification {
    /// A notification for all clients, with the same name.
    pub(super) fn both(name: &'static str, data: Value) -> Self {
        Self { json_rpc: Some(name), legacy: Some(name), data }
    }

    /// A notification for JSON-RPC clients only.
    pub(super) fn json_rpc(name: &'static str, data: Value) -> Self {
        Self { json_rpc: Some(name), legacy: None, data }
    }

    /// A notification for legacy clients only.
    pub(super) fn legacy(name: &'static str, data: Value) -> Self {
        Self { json_rpc: None, legacy: Some(name), data }
    }

    /// The frame; `None` if clients with this framing are not sent it.
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
