//! Messages of the protocol: names, codes and small pieces of JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::SessionId;
use serde_json::{Value, json};

use crate::jsonrpc::{self, Error};

/// The supported version of the protocol.
pub(super) const VERSION: u64 = 1;
/// The longest message, in bytes: pictures come in base64.
pub(super) const MESSAGE_BYTES_LIMIT: usize = 32 * 1024 * 1024;

/// No provider has a key, so the client must authenticate first.
pub(super) const AUTH_REQUIRED: i64 = -32000;
/// The session does not exist.
pub(super) const NOT_FOUND: i64 = -32002;

/// Notifies the client that a request was cancelled.
pub(super) const CANCEL_REQUEST: &str = "$/cancel_request";
pub(super) const REQUEST_PERMISSION: &str = "session/request_permission";
pub(super) const CREATE_ELICITATION: &str = "elicitation/create";

/// The error for a session that does not exist.
pub(super) fn not_found(session: &str) -> Error {
    Error::new(NOT_FOUND, format!("session not found: {session}"))
        .with(json!({ "sessionId": session }))
}

/// A `session/update` notification.
pub(super) fn update(session: &SessionId, update: &Value) -> String {
    let params = json!({ "sessionId": session.as_str(), "update": update });
    jsonrpc::notification("session/update", params)
}

/// A piece of a message.
pub(super) fn chunk(kind: &str, message: &str, content: Value) -> Value {
    json!({ "sessionUpdate": kind, "messageId": message, "content": content })
}

pub(super) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

pub(super) fn image(mime: &str, bytes: &[u8]) -> Value {
    json!({ "type": "image", "mimeType": mime, "data": STANDARD.encode(bytes) })
}

pub(super) fn audio(mime: &str, bytes: &[u8]) -> Value {
    json!({ "type": "audio", "mimeType": mime, "data": STANDARD.encode(bytes) })
}
