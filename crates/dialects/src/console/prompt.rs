//! The prompt of a model call, by its parts and with their tokens.

use quintet_kernel::State;
use quintet_kernel::model::{AssistantPart, Prompt, PromptMessage, PromptPart, TokenCount};
use quintet_kernel::port::Models;
use quintet_kernel::prompt::assemble;
use serde_json::{Value, json};

/// The prompt of a session's open step or, if none is open, of its next one. May take a while, because the
/// tokenizer is loaded first.
pub(super) fn show(state: &State, models: &dyn Models) -> Value {
    let prompt = assemble(state);
    let count = |text: &str| models.count(&prompt.model, text);
    let system = part("system", "System", prompt.system.clone(), &count);
    let tools = prompt.tools.iter().map(|tool| {
        let shown = json!({
            "name": tool.name, "description": tool.description, "parameters": tool.schema,
        });
        let text = serde_json::to_string_pretty(&shown).unwrap_or_default();
        part("tool", &format!("Tool {}", tool.name), text, &count)
    });
    let messages = prompt.messages.iter().map(|message| self::message(message, &count));
    let parts: Vec<Value> = std::iter::once(system).chain(tools).chain(messages).collect();
    let sum = |kinds: &[&str]| -> u64 {
        let of_kind = parts.iter().filter(|part| kinds.iter().any(|kind| part["kind"] == *kind));
        of_kind.filter_map(|part| part["tokens"].as_u64()).sum()
    };
    json!({
        "model": prompt.model.to_string(), "window": state.window(),
        "may_call": prompt.may_call, "sampling": sampling(&prompt),
        "tokens": {
            "system": sum(&["system"]), "tools": sum(&["tool"]),
            "messages": sum(&["user", "assistant", "result"]),
            "total": sum(&["system", "tool", "user", "assistant", "result"]),
        },
        "estimated": parts.iter().any(|part| part["exact"] == false), "parts": parts,
    })
}

fn sampling(prompt: &Prompt) -> Value {
    json!({
        "max_tokens": prompt.sampling.max_tokens, "temperature": prompt.sampling.temperature,
        "effort": prompt.sampling.effort.map(|effort| effort.name()),
    })
}

fn part(kind: &str, title: &str, text: String, count: &dyn Fn(&str) -> TokenCount) -> Value {
    let TokenCount { tokens, exact } = count(&text);
    json!({ "kind": kind, "title": title, "text": text, "tokens": tokens, "exact": exact })
}

fn message(message: &PromptMessage, count: &dyn Fn(&str) -> TokenCount) -> Value {
    match message {
        PromptMessage::System(text) => part("system", "System", text.clone(), count),
        PromptMessage::User(parts) => part("user", "User", texts(parts), count),
        PromptMessage::Assistant { by, parts } => {
            let title = match by {
                Some(model) => format!("Assistant ({model})"),
                None => "Assistant".into(),
            };
            let text: Vec<String> = parts.iter().map(said).collect();
            part("assistant", &title, text.join("\n"), count)
        }
        PromptMessage::Result { call: _, tool, text, media, ok } => {
            let title = format!("Result of {tool}{}", if *ok { "" } else { " (failed)" });
            let media = texts(media);
            let text = if media.is_empty() { text.clone() } else { format!("{text}\n{media}") };
            part("result", &title, text, count)
        }
    }
}

fn texts(parts: &[PromptPart]) -> String {
    let one = |part: &PromptPart| match part {
        PromptPart::Text(text) => text.clone(),
        PromptPart::Media { kind, name, mime, .. } => format!("[{} {name}, {mime}]", kind.name()),
    };
    parts.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn said(said: &AssistantPart) -> String {
    match said {
        AssistantPart::Text(text) => text.clone(),
        AssistantPart::Thought(text) => format!("[thought] {text}"),
        AssistantPart::Sealed(_) => "[sealed by the provider]".into(),
        AssistantPart::Call(call) => format!("[call {}] {}", call.tool, call.input),
    }
}
