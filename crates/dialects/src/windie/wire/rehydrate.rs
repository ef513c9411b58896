//! A conversation as the client stored it, to be continued.

use std::collections::HashMap;

use quintet_kernel::CallId;
use quintet_kernel::command::ImportedMessage;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::PromptCall;
use serde_json::{Value, json};

use super::query::rules;
use crate::windie::decode::{LONGEST_REF, workspace};
use crate::windie::fields::{ENTRIES_LIMIT, Object};

/// A conversation as the client kept it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rehydrate {
    pub(crate) conversation: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) workspace: Option<String>,
    /// Rules of the repository.
    pub(crate) rules: Vec<String>,
    /// The client's name for that history, if it has one.
    pub(crate) revision: Option<String>,
}

/// A message of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) role: Role,
    pub(crate) text: String,
    /// The tool, where it is a result.
    pub(crate) tool: Option<String>,
    /// The pictures with it, by the names of their artifacts.
    pub(crate) screenshots: Vec<String>,
    /// The calls that the model asked for.
    pub(crate) calls: Vec<PromptCall>,
    /// The call that it is the result of.
    pub(crate) call: Option<CallId>,
}

impl Rehydrate {
    pub(crate) fn of(payload: &Object<'_>) -> Self {
        let conversation = payload.needed("conversation_ref").solid_text(LONGEST_REF);
        payload.field("rehydrate_mode").choice(&[("replace", ())]);
        let mut entries = payload.needed("messages").objects(ENTRIES_LIMIT, entry);
        let named = payload.member("model_history").and_then(|kept| kept["revision_id"].as_str());
        let revision = named.filter(|name| name.len() <= LONGEST_REF).map(ToOwned::to_owned);
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
    /// The message for the core; its picture is still to be added.
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

/// What is the result of no call that was asked for before it is words like any other.
fn link(entries: &mut [Entry]) {
    // How often each call was asked for and has no result yet.
    let mut open: HashMap<CallId, usize> = HashMap::new();
    for entry in entries {
        for asked in &entry.calls {
            *open.entry(asked.call.clone()).or_default() += 1;
        }
        let Some(call) = &entry.call else { continue };
        match open.get_mut(call).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => entry.call = None,
        }
    }
}

/// The calls that a message asks for. One without a name that could be one is passed over.
fn calls(role: Role, value: Option<&Value>) -> Vec<PromptCall> {
    let listed = value.and_then(Value::as_array).filter(|_| role == Role::Assistant);
    listed.into_iter().flatten().filter_map(asked).collect()
}

fn asked(call: &Value) -> Option<PromptCall> {
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

/// The call that a message is the result of.
fn answered(role: Role, names: [Option<&Value>; 2]) -> Option<CallId> {
    let named = names.into_iter().flatten().filter_map(Value::as_str);
    named.filter(|_| role == Role::Tool).find_map(|name| CallId::parse(name.trim()))
}

/// Who says something in a conversation, by the words for it.
const ROLES: [(&str, Role); 3] =
    [("user", Role::User), ("assistant", Role::Assistant), ("tool", Role::Tool)];

fn entry(entry: &Object<'_>) -> Entry {
    let role = entry.needed("role").choice(&ROLES).unwrap_or(Role::User);
    for name in ["message_type", "correlation_id", "tool_call_id"] {
        entry.text(name, 0..=usize::MAX);
    }
    for name in ["tool_name", "screenshot_ref"] {
        entry.text(name, 0..=LONGEST_REF);
    }
    said(role, entry)
}

/// A row of what models read, as the client was told of it; instructions come by other ways.
fn row(row: &Object<'_>) -> Option<Entry> {
    let named = row.member("role").and_then(Value::as_str)?;
    let role = ROLES.iter().find(|(word, _)| *word == named)?.1;
    Some(said(role, row))
}

/// What a message says. Its pictures are listed, or there is one.
fn said(role: Role, message: &Object<'_>) -> Entry {
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
        call: answered(role, [message.member("tool_call_id"), message.member("correlation_id")]),
    }
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

#[cfg(test)]
mod tests;
