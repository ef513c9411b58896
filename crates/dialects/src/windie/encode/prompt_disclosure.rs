//! Shows a client the prompt of a model call.

use quintet_kernel::model::{Prompt, PromptMessage, PromptPart};
use serde_json::{Value, json};

use super::history::text;
use crate::windie::agent::builtin_tools;

/// The types and payloads of the messages that show the prompt of a turn, in order.
pub(crate) fn of_turn(prompt: &Prompt, original: &str) -> [(&'static str, Value); 3] {
    let (content, pictured) = query(prompt);
    [
        ("system-prompt", json!({ "content": prompt.system })),
        ("user-message-full", user_message(&content, original, pictured)),
        ("tool-schemas", json!({ "tool_schemas": tool_schemas(prompt) })),
    ]
}

/// The tools that the model is offered.
pub(crate) fn tool_schemas(prompt: &Prompt) -> Vec<Value> {
    prompt.tools.iter().map(|tool| builtin_tools::nested(tool)).collect()
}

/// A user message with its context. `original` is the user's own text.
pub(crate) fn user_message(content: &str, original: &str, pictured: bool) -> Value {
    let injected = injected_context(content);
    let memory = injected.contains("_memory>");
    json!({
        "content": content,
        "metadata": {
            "original_query": original,
            "context_type": "initial",
            "injected_context": injected,
            "active_window": between(content, "active_window").unwrap_or_default(),
            "has_screenshot": pictured,
            "has_memory": memory,
        },
    })
}

/// The text of the last user message, and whether it has a picture.
fn query(prompt: &Prompt) -> (String, bool) {
    let last = prompt.messages.iter().rev().find_map(|message| match &**message {
        PromptMessage::User(parts) => Some(parts.as_slice()),
        PromptMessage::System(_)
        | PromptMessage::Assistant { .. }
        | PromptMessage::Result { .. } => None,
    });
    let parts = last.unwrap_or_default();
    (text(parts), parts.iter().any(|part| matches!(part, PromptPart::Media { .. })))
}

/// The context around a query.
fn injected_context(content: &str) -> String {
    let around = content.split_once("<user_query>").and_then(|(before, rest)| {
        let (_, after) = rest.split_once("</user_query>")?;
        Some(format!("{before}{after}"))
    });
    around.unwrap_or_default().trim().into()
}

/// The text between the tags of a name.
pub(crate) fn between<'a>(content: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = content.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    Some(inner.trim())
}
