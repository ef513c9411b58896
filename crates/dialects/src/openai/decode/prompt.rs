//! Converts a client's conversation into the prompt of a provider's model, without additions.

use std::collections::HashMap;
use std::sync::Arc;

use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::model::{
    AssistantPart, ModelRef, Prompt, PromptCall, PromptMessage, PromptPart, WebSearch,
};
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
use quintet_kernel::{BlobId, CallId};
use serde_json::Value;

use super::content::{Media, Part};
use super::{Call, FunctionTool, Generation, Message};

/// The prompt for a provider's model. Instructions at the start become the system prompt.
pub(crate) fn prompt(generation: Generation, model: ModelRef) -> Prompt {
    let Generation { instructions, mut messages, tools, may_call, sampling, .. } = generation;
    let system = instructions.or_else(|| match messages.first_mut() {
        Some(Message::System(text)) => {
            let text = std::mem::take(text);
            messages.remove(0);
            Some(text)
        }
        Some(Message::User(_) | Message::Assistant { .. } | Message::Result { .. }) | None => None,
    });
    let mut names = HashMap::new();
    let messages =
        messages.into_iter().map(|message| Arc::new(prompt_message(message, &mut names)));
    Prompt {
        model,
        system: system.unwrap_or_default(),
        messages: messages.collect(),
        tools: tools.into_iter().map(|tool| Arc::new(spec(tool))).collect(),
        may_call,
        search: WebSearch::Off,
        sampling,
        account: None,
    }
}

/// Converts a message; `names` maps the ids of earlier calls to their tools.
fn prompt_message(message: Message, names: &mut HashMap<String, String>) -> PromptMessage {
    match message {
        Message::System(text) => PromptMessage::System(text),
        Message::User(parts) => PromptMessage::User(parts.into_iter().map(part).collect()),
        Message::Assistant { text, calls } => {
            let text = (!text.is_empty()).then_some(AssistantPart::Text(text));
            let calls = calls.into_iter().map(|call| {
                names.insert(call.id.clone(), call.tool.clone());
                AssistantPart::Call(prompt_call(call))
            });
            PromptMessage::Assistant { by: None, parts: text.into_iter().chain(calls).collect() }
        }
        Message::Result { call, text } => {
            let tool = names.get(&call).cloned().unwrap_or_default();
            let (call, media) = (CallId::named(call), Vec::new());
            PromptMessage::Result { call, tool, text, media, ok: true }
        }
    }
}

fn prompt_call(Call { id, tool, arguments }: Call) -> PromptCall {
    let input =
        serde_json::from_str(&arguments).unwrap_or_else(|_| Value::String(arguments.clone()));
    PromptCall { written: Some(arguments), ..PromptCall::new(CallId::named(id), tool, input) }
}

fn part(part: Part) -> PromptPart {
    match part {
        Part::Text(text) => PromptPart::Text(text),
        Part::Media(Media { kind, name, mime, content, detail }) => {
            // The content is in the prompt, so no blob is stored.
            let blob = BlobId::named(String::new());
            PromptPart::Media { kind, name, mime, blob, content: content.into(), detail }
        }
    }
}

fn spec(tool: FunctionTool) -> ToolSpec {
    let FunctionTool { name, description, parameters, strict } = tool;
    let (kind, placement) = (ToolKind::Network, Placement::Client);
    ToolSpec { name, description, schema: parameters, kind, placement, strict }
}
