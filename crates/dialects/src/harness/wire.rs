//! The types of the protocol, with the names of its specification.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Deserializes a member that may be null, which means the same as leaving it out.
fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(from).map(Option::unwrap_or_default)
}

#[derive(Debug, Deserialize)]
pub(super) struct CreateSession {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) workspace_path: String,
    pub(super) system_prompt: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) spec_path: Option<String>,
    pub(super) model: Option<String>,
    #[expect(dead_code, reason = "a new session has nothing to run, but the type is checked")]
    auto_run: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AddMessage {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) role: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) parts: Vec<InPart>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) auto_run: bool,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct InPart {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    #[serde(rename = "ref")]
    pub(super) reference: Option<String>,
    pub(super) mime_type: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Approve {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) turn_id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) tool_call_id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) action: String,
    pub(super) reason: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) remember_choice: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) apply_to_similar: bool,
    /// The values that answer a question of a running call.
    pub(super) content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Cancel {
    pub(super) reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SetMode {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) mode: String,
    pub(super) spec_path: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attach {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    pub(super) mime_type: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) content_base64: String,
}

#[derive(Debug, Serialize)]
pub(super) struct ErrorBody<'a> {
    pub(super) error: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct Event<'a> {
    pub(super) ts: String,
    pub(super) session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn_id: Option<&'a str>,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<&'a str>,
    pub(super) data: Data<'a>,
}

/// Deltas are the most frequent events, so they are serialized without an intermediate `Value`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Data<'a> {
    Delta { kind: &'static str, delta: &'a str },
    Json(Value),
}

#[derive(Debug, Serialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) status: &'static str,
    pub(super) mode: String,
    pub(super) workspace_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spec_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_turn_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) messages: Option<Vec<Message>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<Vec<Turn>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pending_approvals: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) role: &'static str,
    pub(super) parts: Vec<OutPart>,
    pub(super) created_at: String,
    pub(super) turn_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) interrupted: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutPart {
    Text { text: String },
    Image { r#ref: String, mime_type: Option<String> },
    Audio { r#ref: String, mime_type: Option<String> },
    File { r#ref: String, mime_type: Option<String> },
    ToolUse { tool_call_id: String, tool_name: String, tool_input: Value },
}

#[derive(Debug, Serialize)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verified: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) changed_files: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) reverted: bool,
}
