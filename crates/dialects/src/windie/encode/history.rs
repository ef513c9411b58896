//! A conversation in the form that clients store, made from the prompt of a model.

use quintet_kernel::Time;
use quintet_kernel::model::{
    AssistantPart, Prompt, PromptMessage, PromptPart, TokenCount, assistant_calls, assistant_text,
};
use serde_json::{Value, json};

use crate::windie::artifacts::is_own;

/// The estimated number of tokens of a prompt.
pub(crate) fn token_estimate(prompt: &Prompt) -> u64 {
    let texts = prompt.messages.iter().map(|message| match &**message {
        PromptMessage::System(text) => text.clone(),
        PromptMessage::User(parts) => text(parts),
        PromptMessage::Assistant { parts, .. } => assistant_text(parts),
        PromptMessage::Result { text, .. } => text.clone(),
    });
    let count = |text: String| TokenCount::guess(&text).tokens;
    TokenCount::guess(&prompt.system).tokens + texts.map(count).sum::<u64>()
}

/// A history that a client stores under an id of its own.
pub(crate) struct Checkpoint<'a> {
    /// The client's name of the conversation.
    pub(crate) conversation: Option<String>,
    /// The client's id of the history.
    pub(crate) revision: String,
    /// The client's id of the request that led to it.
    pub(crate) request: &'a str,
}

impl Checkpoint<'_> {
    /// The payload with the rows for the client to store.
    pub(crate) fn payload(&self, prompt: &Prompt, summarized: bool, at: Time) -> Value {
        let Self { conversation, revision, request } = self;
        let checkpoint = format!("mh:{revision}:{request}");
        let mut rows = entries(prompt, summarized);
        for (n, row) in rows.iter_mut().enumerate() {
            row["id"] = format!("{checkpoint}:{n}").into();
            row["conversation_ref"] = json!(conversation);
            row["revision_id"] = revision.as_str().into();
        }
        json!({
            "conversation_ref": conversation,
            "revision_id": revision,
            "checkpoint_id": checkpoint,
            "created_at": at.to_string(),
            "rows": rows,
        })
    }
}

/// The entries of a conversation; the first is its summary if `summarized`.
pub(crate) fn entries(prompt: &Prompt, summarized: bool) -> Vec<Value> {
    let messages = prompt.messages.iter().enumerate();
    messages.map(|(n, message)| pictured(message, entry(message, summarized && n == 0))).collect()
}

/// Adds the ids of uploaded pictures, which a client can fetch and send again.
fn pictured(message: &PromptMessage, mut entry: Value) -> Value {
    let parts = match message {
        PromptMessage::User(parts) | PromptMessage::Result { media: parts, .. } => parts.as_slice(),
        PromptMessage::System(_) | PromptMessage::Assistant { .. } => &[],
    };
    let name = |part: &PromptPart| match part {
        PromptPart::Media { name, .. } => Some(name.clone()).filter(|name| is_own(name)),
        PromptPart::Text(_) => None,
    };
    let names: Vec<String> = parts.iter().filter_map(name).collect();
    if let Some(first) = names.first() {
        entry["screenshot_ref"] = first.as_str().into();
        entry["image_refs"] = names.into();
    }
    entry
}

fn entry(message: &PromptMessage, summary: bool) -> Value {
    match message {
        PromptMessage::System(text) => json!({
            "role": "system",
            "content": text,
            "message_type": "system",
        }),
        PromptMessage::User(parts) => json!({
            "role": "user",
            "content": text(parts),
            "message_type": if summary { "context_compaction" } else { "user_query" },
        }),
        PromptMessage::Assistant { parts, .. } => json!({
            "role": "assistant",
            "content": assistant_text(parts),
            "message_type": "assistant_response",
            "tool_calls": calls(parts),
        }),
        PromptMessage::Result { call, tool, text, .. } => json!({
            "role": "tool",
            "content": text,
            "message_type": "tool_output",
            "tool_name": tool,
            "tool_call_id": call.as_str(),
            "correlation_id": call.as_str(),
        }),
    }
}

fn calls(parts: &[AssistantPart]) -> Vec<Value> {
    let call = |call: &quintet_kernel::model::PromptCall| {
        let function = json!({ "name": call.tool, "arguments": call.input.to_string() });
        json!({ "id": call.call.as_str(), "type": "function", "function": function })
    };
    assistant_calls(parts).map(call).collect()
}

/// The text of a message.
pub(crate) fn text(parts: &[PromptPart]) -> String {
    let text = |part: &PromptPart| match part {
        PromptPart::Text(text) => Some(text.clone()),
        PromptPart::Media { .. } => None,
    };
    parts.iter().filter_map(text).collect()
}
