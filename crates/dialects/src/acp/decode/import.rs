//! Transcripts of other agents, as `quintet import` sends them.

use std::path::PathBuf;

use quintet_kernel::CallId;
use quintet_kernel::command::ImportedMessage;
use quintet_kernel::message::{Part, Role};
use serde_json::Value;

use super::absolute;
use crate::jsonrpc::{Error, Fields};

/// A transcript of another agent.
#[derive(Clone, Debug)]
pub(in super::super) struct Import {
    /// The name of the other agent.
    pub(in super::super) source: String,
    /// The agent's id of the transcript.
    pub(in super::super) id: String,
    /// The workspace of the new session.
    pub(in super::super) cwd: PathBuf,
    /// The messages, oldest first.
    pub(in super::super) messages: Vec<ImportedMessage>,
}

impl PartialEq for Import {
    fn eq(&self, other: &Self) -> bool {
        (&self.source, &self.id) == (&other.source, &other.id)
    }
}

pub(super) fn import(fields: &Fields<'_>, params: &Value) -> Result<Import, Error> {
    let messages = params["messages"].as_array();
    let messages = messages.ok_or_else(|| Error::field("messages", "a list of messages"))?;
    Ok(Import {
        source: fields.required_text("source")?.to_owned(),
        id: fields.required_text("id")?.to_owned(),
        cwd: absolute(fields, fields.required_text("cwd")?)?,
        messages: messages.iter().enumerate().map(message).collect::<Result<_, _>>()?,
    })
}

fn message((nth, message): (usize, &Value)) -> Result<ImportedMessage, Error> {
    let wrong = |what: &str| Error::field(&format!("messages[{nth}]"), what);
    let role = match message["role"].as_str() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some(_) | None => return Err(wrong("of the role user, assistant or tool")),
    };
    let call = match &message["call"] {
        Value::Null => None,
        call => Some(call_id(call).ok_or_else(|| wrong("the result of a call"))?),
    };
    let parts = message["parts"].as_array().ok_or_else(|| wrong("a list of parts"))?;
    let parts = parts.iter().map(part).collect::<Option<Vec<_>>>();
    let parts = parts.ok_or_else(|| wrong("made of text, thought and call"))?;
    Ok(ImportedMessage { role, parts, wording: None, call })
}

fn part(part: &Value) -> Option<Part> {
    let text = || part["text"].as_str().map(str::to_owned);
    match part["type"].as_str()? {
        "text" => text().map(Part::Text),
        "thought" => text().map(Part::Thought),
        "call" => Some(Part::Call {
            call: call_id(&part["id"])?,
            tool: part["tool"].as_str()?.to_owned(),
            input: part["input"].clone(),
        }),
        _ => None,
    }
}

fn call_id(value: &Value) -> Option<CallId> {
    CallId::parse(value.as_str()?)
}
