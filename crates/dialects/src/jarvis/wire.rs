//! The types of the protocol, named as in its JSON Schemas; unknown members are refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::strict::{Object, parse_names, present};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateSession {
    pub(super) jarvis_session_id: String,
    #[serde(default, deserialize_with = "present")]
    pub(super) preferred_session_id: Option<String>,
    /// An extension of the protocol: tools that this desktop has in addition to the default ones.
    #[serde(default, deserialize_with = "present")]
    pub(super) tools: Option<Vec<Object<Tool>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default, deserialize_with = "present")]
    pub(super) parameters: Option<Value>,
    #[serde(default)]
    pub(super) risk: Risk,
}

/// The risk of a call, in the terms of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub(super) enum Risk {
    /// Runs without asking.
    Safe,
    /// Runs if the user approves.
    #[default]
    Risky,
    /// Never runs.
    Forbidden,
}

parse_names!(Risk: "safe" => Self::Safe, "risky" => Self::Risky, "forbidden" => Self::Forbidden);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chat {
    pub(super) general_session_id: String,
    #[expect(dead_code, reason = "there is one mode, and it must be named")]
    mode: Mode,
    pub(super) message: Object<Message>,
    pub(super) stream: bool,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
enum Mode {
    General,
}

parse_names!(Mode: "general" => Self::General);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    pub(super) parts: Vec<Object<Part>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    #[serde(rename = "type")]
    #[expect(dead_code, reason = "there is one type, and it must be named")]
    kind: PartKind,
    #[serde(default, deserialize_with = "present")]
    pub(super) text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
enum PartKind {
    Text,
}

parse_names!(PartKind: "text" => Self::Text);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PostResult {
    pub(super) general_session_id: String,
    pub(super) tool_result: Object<ToolResult>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolResult {
    pub(super) id: String,
    pub(super) ok: bool,
    #[serde(default)]
    pub(super) result: Value,
    /// Null, a string, or an object with a code and a message.
    #[serde(default)]
    pub(super) error: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryWrite {
    pub(super) general_session_id: String,
    pub(super) target: Target,
    pub(super) content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Target {
    LongTerm,
    Daily,
}

parse_names!(Target: "long_term" => Self::LongTerm, "daily" => Self::Daily);

#[derive(Debug, Serialize)]
pub(super) struct Health {
    pub(super) healthy: bool,
    pub(super) version: &'static str,
    pub(super) uptime_ms: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Text<'a> {
    pub(super) text: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolRequest<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: Value,
    pub(super) risk: Risk,
    pub(super) reason: String,
}

#[derive(Debug, Serialize)]
pub(super) struct ToolOutcome<'a> {
    pub(super) id: &'a str,
    pub(super) ok: bool,
    pub(super) result: Option<String>,
    pub(super) error: Value,
}

/// The data of an `error` event; [`ErrorBody`] contains it in an HTTP response.
#[derive(Debug, Serialize)]
pub(super) struct Error<'a> {
    pub(super) code: &'a str,
    pub(super) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize)]
pub(super) struct ErrorBody<'a> {
    pub(super) error: Error<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct MemoryMatch<'a> {
    pub(super) path: &'a str,
    pub(super) excerpt: &'a str,
    pub(super) line_start: u64,
    pub(super) line_end: u64,
    pub(super) score: f64,
}
