//! Contexts in the format of the original server: always with a limit, and message by message.

use std::collections::HashSet;

use quintet_kernel::State;
use quintet_kernel::model::{
    AssistantPart, PromptMessage, PromptPart, assistant_calls, assistant_text,
};
use quintet_kernel::port::Models;
use quintet_kernel::prompt::{assemble, system_prompt};
use serde_json::{Value, json};

use super::shape;

/// The context window that the original assumes for unknown models; its clients need a number.
pub(super) const ASSUMED_CONTEXT_WINDOW: u64 = 200_000;
/// Characters of a message's summary.
const SUMMARY_LENGTH_LIMIT: usize = 100;

/// The size of the context and its parts.
pub(super) fn snapshot(state: &State, models: &dyn Models) -> Value {
    let mut shown = shape::context(state, models);
    if shown["contextLimit"].is_null() {
        let share =
            shown["currentTokens"].as_u64().unwrap_or(0) as f64 / ASSUMED_CONTEXT_WINDOW as f64;
        shown["contextLimit"] = ASSUMED_CONTEXT_WINDOW.into();
        shown["usagePercent"] = share.into();
        shown["thresholdLevel"] = shape::level(share).into();
        shown["level"] = shape::level(share).into();
    }
    shown
}

/// The size of the context, with its whole content as sent to a model.
pub(super) fn whole(state: &State, models: &dyn Models) -> Value {
    let prompt = assemble(state);
    let mut shown = snapshot(state, models);
    let count_tokens = |text: &str| models.count(&prompt.model, text).tokens;
    let messages = prompt.messages.iter().enumerate();
    let messages: Vec<Value> = messages.map(|(n, one)| message(n, one, &count_tokens)).collect();
    let tools = prompt.tools.iter().map(|tool| format!("{}: {}", tool.name, tool.description));
    shown["messages"] = messages.into();
    shown["systemPromptContent"] = system_prompt(state).into();
    shown["toolsContent"] = tools.collect::<Vec<_>>().into();
    shown["addedSkills"] = json!([]);
    shown
}

fn message(index: usize, message: &PromptMessage, count_tokens: &dyn Fn(&str) -> u64) -> Value {
    let (role, content) = match message {
        PromptMessage::System(text) => ("system", text.clone()),
        PromptMessage::User(parts) => ("user", plain_text(parts)),
        PromptMessage::Assistant { parts, .. } => ("assistant", assistant_text(parts)),
        PromptMessage::Result { text, .. } => ("toolResult", text.clone()),
    };
    let mut shown = json!({
        "index": index,
        "role": role,
        "tokens": count_tokens(&content),
        "summary": summary(&content),
        "content": content,
    });
    match message {
        PromptMessage::Assistant { parts, .. } => add_calls(&mut shown, parts, count_tokens),
        PromptMessage::Result { call, ok, .. } => {
            shown["toolCallId"] = call.as_str().into();
            shown["isError"] = (!ok).into();
        }
        PromptMessage::System(_) | PromptMessage::User(_) => {}
    }
    shown
}

fn add_calls(shown: &mut Value, parts: &[AssistantPart], count_tokens: &dyn Fn(&str) -> u64) {
    let calls: Vec<(u64, Value)> = assistant_calls(parts)
        .map(|call| {
            let arguments = call.input.to_string();
            let tokens = count_tokens(&call.tool) + count_tokens(&arguments);
            let id = call.call.as_str();
            let shown =
                json!({ "id": id, "name": call.tool, "tokens": tokens, "arguments": arguments });
            (tokens, shown)
        })
        .collect();
    if calls.is_empty() {
        return;
    }
    let tokens: u64 = calls.iter().map(|(tokens, _)| tokens).sum();
    shown["tokens"] = (shown["tokens"].as_u64().unwrap_or(0) + tokens).into();
    shown["toolCalls"] = calls.into_iter().map(|(_, call)| call).collect::<Vec<_>>().into();
}

fn plain_text(parts: &[PromptPart]) -> String {
    let text = |part: &PromptPart| match part {
        PromptPart::Text(text) => text.clone(),
        PromptPart::Media { name, .. } => format!("[{name}]"),
    };
    parts.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// The beginning of a text, on one line.
pub(super) fn summary(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SUMMARY_LENGTH_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What a compaction would replace, from the session's state before and after it.
pub(super) fn preview(before: &State, after: &State) -> Vec<(&'static str, Value)> {
    let written = after.compaction.summary.as_ref();
    let written = written.filter(|_| before.compaction.summary != after.compaction.summary);
    let (total, kept) = (turns_in_prompt(before), turns_in_prompt(after));
    vec![
        ("summary", written.map_or("", |summary| &summary.text).into()),
        ("preservedTurns", kept.into()),
        ("summarizedTurns", total.saturating_sub(kept).into()),
    ]
}

/// The number of turns whose messages are in the prompt unchanged.
fn turns_in_prompt(state: &State) -> usize {
    let upto = state.compaction.summary.as_ref().map(|summary| &summary.upto);
    let end = state.messages.iter().position(|message| Some(&message.id) == upto);
    let from = end.map_or(state.forgotten, |end| end + 1).max(state.forgotten);
    let turns = state.messages.iter().skip(from).map(|message| &message.turn);
    turns.collect::<HashSet<_>>().len()
}
