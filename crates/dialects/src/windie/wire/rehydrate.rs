//! A conversation as the client stored it, to be continued.

use std::collections::HashMap;

use quintet_kernel::CallId;
use quintet_kernel::command::ImportedMessage;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::PromptCall;
use serde_json::{Value, json};

use super::query::rules;
use crate::windie::decode::{REF_LIMIT, workspace};
use crate::windie::fields::{ENTRIES_LIMIT, Object};

/// A conversation as the client stored it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rehydrate {
    pub(crate) conversation: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) workspace: Option<String>,
    /// Rules of the repository.
    pub(crate) rules: Vec<String>,
    /// The client's id of that history, if it has one.
    pub(crate) revision: Option<String>,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) role: Role,
    pub(crate) text: String,
    /// The tool, where it is a result.
    pub(crate) tool: Option<String>,
    /// The pictures of the message, by their artifact ids.
    pub(crate) screenshots: Vec<String>,
    /// The calls that the model requested.
    pub(crate) calls: Vec<PromptCall>,
    /// The call, if the message is its result.
    pub(crate) call: Option<CallId>,
}

impl Rehydrate {
    pub(crate) fn of(payload: &Object<'_>) -> Self {
        let conversation = payload.needed("conversation_ref").solid_text(REF_LIMIT);
        payload.field("rehydrate_mode").choice(&[("replace", ())]);
        let mut entries = payload.needed("messages").objects(ENTRIES_LIMIT, entry);
        let named = payload.member("model_history").and_then(|kept| kept["revision_id"].as_str());
        let revision = named.filter(|name| name.len() <= REF_LIMIT).map(ToOwned::to_owned);
        if entries.is_empty()
            && let Some(kept) = payload.object("model_history")
        {
            entries = kept.objects("rows", ENTRIES_LIMIT, row).into_iter().flatten().collect();
        }
        link(&mut entries);
        Self {
            conversation: conversation.unwrap_or_default(),
            entries,
            workspace: workspace(payload),
            rules: rules(payload),
            revision,
        }
    }
}

impl Entry {
    /// The message for the core, without its pictures.
    pub(crate) fn recalled(&self) -> ImportedMessage {
        if let Some(call) = &self.call {
            let (parts, call) = (vec![Part::Text(self.text.clone())], Some(call.clone()));
            return ImportedMessage { role: Role::Tool, parts, wording: None, call };
        }
        let text = match (self.role, &self.tool) {
            (Role::Tool, Some(tool)) => format!("Result of {tool}:\n{}", self.text),
            (Role::Tool, None) => format!("Result of a tool:\n{}", self.text),
            (Role::User | Role::Assistant | Role::System, _) => self.text.clone(),
        };
        let mut recalled = ImportedMessage::text(self.role, text);
        recalled.parts.extend(self.calls.iter().cloned().map(called));
        recalled
    }
}

fn called(PromptCall { call, tool, input, .. }: PromptCall) -> Part {
    Part::Call { call, tool, input }
}

/// Makes results without an earlier request plain text.
fn link(entries: &mut [Entry]) {
    // Requests of each call that have no result yet.
    let mut open: HashMap<CallId, usize> = HashMap::new();
    for entry in entries {
        for requested in &entry.calls {
            *open.entry(requested.call.clone()).or_default() += 1;
        }
        let Some(call) = &entry.call else { continue };
        match open.get_mut(call).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => entry.call = None,
        }
    }
}

/// The calls that a message requests. A call without a valid id or tool is ignored.
fn calls(role: Role, value: Option<&Value>) -> Vec<PromptCall> {
    let listed = value.and_then(Value::as_array).filter(|_| role == Role::Assistant);
    listed.into_iter().flatten().filter_map(requested).collect()
}

fn requested(call: &Value) -> Option<PromptCall> {
    let function = &call["function"];
    let tool = [&call["name"], &function["name"]].into_iter().find_map(Value::as_str)?.trim();
    let given = [&call["arguments"], &call["args"], &function["arguments"]];
    let input = given.into_iter().find_map(arguments).unwrap_or_else(|| json!({}));
    let call = CallId::parse(call["id"].as_str()?.trim())?;
    (!tool.is_empty()).then(|| PromptCall::new(call, tool, input))
}

fn arguments(value: &Value) -> Option<Value> {
    match value {
        Value::Object(_) => Some(value.clone()),
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

/// The call whose result a message is.
fn result_of(role: Role, names: [Option<&Value>; 2]) -> Option<CallId> {
    let named = names.into_iter().flatten().filter_map(Value::as_str);
    named.filter(|_| role == Role::Tool).find_map(|name| CallId::parse(name.trim()))
}

/// The roles of stored messages.
const ROLES: [(&str, Role); 3] =
    [("user", Role::User), ("assistant", Role::Assistant), ("tool", Role::Tool)];

fn entry(entry: &Object<'_>) -> Entry {
    let role = entry.needed("role").choice(&ROLES).unwrap_or(Role::User);
    for name in ["message_type", "correlation_id", "tool_call_id"] {
        entry.text(name, 0..=usize::MAX);
    }
    for name in ["tool_name", "screenshot_ref"] {
        entry.text(name, 0..=REF_LIMIT);
    }
    content(role, entry)
}

/// A row of a model history; rows of other roles, such as instructions, are ignored.
fn row(row: &Object<'_>) -> Option<Entry> {
    let named = row.member("role").and_then(Value::as_str)?;
    let role = ROLES.iter().find(|(word, _)| *word == named)?.1;
    Some(content(role, row))
}

/// The content of a message, with a list of pictures or a single one.
fn content(role: Role, message: &Object<'_>) -> Entry {
    let text = |name: &str| {
        let text = message.member(name).and_then(Value::as_str);
        text.filter(|text| !text.trim().is_empty()).map(ToOwned::to_owned)
    };
    let listed = message.member("image_refs").and_then(Value::as_array).into_iter().flatten();
    let mut screenshots: Vec<String> =
        listed.filter_map(Value::as_str).map(ToOwned::to_owned).collect();
    if screenshots.is_empty() {
        screenshots.extend(text("screenshot_ref"));
    }
    Entry {
        role,
        text: message.member("content").map(plain).unwrap_or_default(),
        tool: text("tool_name"),
        screenshots,
        calls: calls(role, message.member("tool_calls")),
        call: result_of(role, [message.member("tool_call_id"), message.member("correlation_id")]),
    }
}

/// The text of a message content: a text, or parts of which some are text.
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

#[cfg(test)]
mod tests;
