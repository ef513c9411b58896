//! A conversation as the client kept it, to go on with.

use quintet_kernel::command::Recalled;
use quintet_kernel::message::Role;
use serde_json::Value;

use super::decode::{LONGEST_REF, workspace};
use super::fields::Object;
use super::query::rules;

/// A conversation as the client kept it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rehydrate {
    pub(crate) conversation: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) workspace: Option<String>,
    /// Rules of the repository.
    pub(crate) rules: Vec<String>,
}

/// A message of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) role: Role,
    pub(crate) text: String,
    /// The tool, where it is a result.
    pub(crate) tool: Option<String>,
    /// The picture with it, by the name of its artifact.
    pub(crate) screenshot: Option<String>,
}

impl Rehydrate {
    /// Reads it. Nothing comes back if its shape is wrong.
    pub(crate) fn of(payload: &Object<'_>) -> Option<Self> {
        let conversation = payload.solid_text("conversation_ref", LONGEST_REF);
        payload.word("rehydrate_mode", &["replace"]);
        payload.needed("messages");
        let mut entries: Vec<Entry> =
            payload.objects("messages").iter().filter_map(entry).collect();
        if entries.is_empty() {
            let kept = payload.object("model_history");
            let rows = kept.as_ref().map(|kept| kept.objects("rows")).unwrap_or_default();
            entries = rows.iter().filter_map(row).collect();
        }
        Some(Self {
            conversation: conversation.unwrap_or_default(),
            entries,
            workspace: workspace(payload),
            rules: rules(payload),
        })
    }
}

impl Entry {
    /// The message for the core; its picture is still to be added.
    pub(crate) fn recalled(&self) -> Recalled {
        let text = match (self.role, &self.tool) {
            (Role::Tool, Some(tool)) => format!("Result of {tool}:\n{}", self.text),
            (Role::Tool, None) => format!("Result of a tool:\n{}", self.text),
            (Role::User | Role::Assistant | Role::System, _) => self.text.clone(),
        };
        Recalled::text(self.role, text)
    }
}

fn entry(entry: &Object<'_>) -> Option<Entry> {
    entry.needed("role");
    let role = entry.word("role", &["user", "assistant", "tool"]);
    for name in ["message_type", "correlation_id", "tool_call_id"] {
        entry.text(name, 0..=usize::MAX);
    }
    let tool = entry.text("tool_name", 0..=LONGEST_REF);
    let screenshot = entry.text("screenshot_ref", 0..=LONGEST_REF);
    let role = match role? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::Tool,
    };
    let text = entry.member("content").map(plain).unwrap_or_default();
    let given = |name: &String| !name.trim().is_empty();
    Some(Entry { role, text, tool: tool.filter(given), screenshot: screenshot.filter(given) })
}

/// A row of what models read, as the client was told of it; instructions come by other ways.
fn row(row: &Object<'_>) -> Option<Entry> {
    let role = match row.member("role").and_then(Value::as_str)? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return None,
    };
    let text = |name: &str| row.member(name).and_then(Value::as_str).map(str::to_owned);
    let pictures = row.member("image_refs").and_then(Value::as_array);
    let picture = pictures.and_then(|refs| refs.first()).and_then(Value::as_str).map(Into::into);
    Some(Entry {
        role,
        text: row.member("content").map(plain).unwrap_or_default(),
        tool: text("tool_name"),
        screenshot: text("screenshot_ref").or(picture),
    })
}

/// The text of what a message says: text, or pieces of which some are text.
fn plain(content: &Value) -> String {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => {
            let piece = |piece: &Value| match piece {
                Value::String(text) => Some(text.clone()),
                piece => piece["text"].as_str().map(Into::into),
            };
            pieces.iter().filter_map(piece).collect::<Vec<String>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    };
    text.replace('\0', "")
}
