//! A conversation as clients keep it, made of what a model would be asked.

use quintet_kernel::model::{
    Count, Prompt, PromptMessage, PromptPart, Said, calls_said, text_said,
};
use serde_json::{Value, json};

/// How many tokens a prompt is, by a rule of thumb.
pub(crate) fn weight(prompt: &Prompt) -> u64 {
    let texts = prompt.messages.iter().map(|message| match &**message {
        PromptMessage::System(text) => text.clone(),
        PromptMessage::User(parts) => text(parts),
        PromptMessage::Assistant { parts, .. } => text_said(parts),
        PromptMessage::Result { text, .. } => text.clone(),
    });
    let count = |text: String| Count::guess(&text).tokens;
    Count::guess(&prompt.system).tokens + texts.map(count).sum::<u64>()
}

/// The entries that stand for a conversation, of which the first may be its summary.
pub(crate) fn entries(prompt: &Prompt, summarized: bool) -> Vec<Value> {
    let messages = prompt.messages.iter().enumerate();
    messages.map(|(n, message)| entry(message, summarized && n == 0)).collect()
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
            "content": text_said(parts),
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

fn calls(parts: &[Said]) -> Vec<Value> {
    let call = |call: &quintet_kernel::model::PromptCall| {
        let function = json!({ "name": call.tool, "arguments": call.input.to_string() });
        json!({ "id": call.call.as_str(), "type": "function", "function": function })
    };
    calls_said(parts).map(call).collect()
}

fn text(parts: &[PromptPart]) -> String {
    let text = |part: &PromptPart| match part {
        PromptPart::Text(text) => Some(text.clone()),
        PromptPart::Media { .. } => None,
    };
    parts.iter().filter_map(text).collect()
}
