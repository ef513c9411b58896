//! Removes failed attempts from the conversation that a small model reads, after their changes were
//! undone.
//!
//! A small model repeats what it reads. If it reads its own failed calls, it makes them again; with
//! the original file and a short note about the failed attempt it finds another way more often.

use std::sync::Arc;

use quintet_kernel::model::{AssistantPart, PromptMessage, assistant_calls};
use serde_json::Value;

use super::{output, request};

/// Maximum length of an attempt and of its failure in the note, in characters.
const NOTE_CHARS_LIMIT: usize = 240;

/// One answer of the model and the results of its calls.
struct Step {
    /// The messages from here to the next step.
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A change that was made.
    Change,
    /// A change that was refused, for example because its old text does not exist.
    Refused,
    /// A command that failed.
    Failure,
    /// The file as it was before the changes.
    Undo,
    Other,
}

/// The messages, with undone and refused changes replaced by a short note.
pub(crate) fn shortened_history(messages: &[Arc<PromptMessage>]) -> Vec<Arc<PromptMessage>> {
    let asked = messages.iter().rposition(|message| matches!(**message, PromptMessage::User(_)));
    let steps = steps(messages, asked.map_or(0, |at| at + 1));
    let undone = undone(&steps);
    let mut skipped: Vec<(usize, usize)> = undone.into_iter().collect();
    // Of the refused changes only the last one is kept.
    let refused =
        steps.windows(2).filter(|pair| pair.iter().all(|step| step.kind == Kind::Refused));
    skipped.extend(refused.map(|pair| (pair[0].start, pair[0].end)));
    let kept = |at: usize| !skipped.iter().any(|(start, end)| (*start..*end).contains(&at));
    let mut shortened = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some((start, end)) = undone.filter(|(start, _)| *start == at) {
            shortened.push(note(&messages[start..end]));
        }
        if kept(at) {
            shortened.push(Arc::clone(message));
        }
    }
    shortened
}

/// The messages from the first change to the last undo.
fn undone(steps: &[Step]) -> Option<(usize, usize)> {
    let first = steps.iter().position(|step| step.kind == Kind::Change)?;
    let last = steps.iter().rposition(|step| step.kind == Kind::Undo)?;
    (first < last).then(|| (steps[first].start, steps[last].end))
}

fn steps(messages: &[Arc<PromptMessage>], from: usize) -> Vec<Step> {
    let starts: Vec<usize> = (from..messages.len())
        .filter(|at| matches!(*messages[*at], PromptMessage::Assistant { .. }))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    let mut steps: Vec<Step> = Vec::new();
    for (start, end) in starts.iter().copied().zip(ends) {
        let kind = kind(&messages[start..end], &messages[..start]);
        steps.push(Step { start, end, kind });
    }
    steps
}

fn kind(step: &[Arc<PromptMessage>], before: &[Arc<PromptMessage>]) -> Kind {
    let results = step.iter().filter_map(|message| match &**message {
        PromptMessage::Result { tool, ok, .. } => Some((tool.as_str(), *ok)),
        PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Assistant { .. } => None,
    });
    let results: Vec<(&str, bool)> = results.collect();
    match results[..] {
        [("write_file", true)] if is_undo(step, before) => Kind::Undo,
        [("shell", false)] => Kind::Failure,
        [("shell", _)] => Kind::Other,
        [(tool, true)] if request::changes(tool) => Kind::Change,
        [(tool, false)] if request::changes(tool) => Kind::Refused,
        _ => Kind::Other,
    }
}

/// True if a step writes the content that was read before.
fn is_undo(step: &[Arc<PromptMessage>], before: &[Arc<PromptMessage>]) -> bool {
    let calls = step.iter().filter_map(|message| match &**message {
        PromptMessage::Assistant { parts, .. } => assistant_calls(parts).next(),
        PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Result { .. } => None,
    });
    let written = calls.into_iter().find_map(|call| call.input["content"].as_str());
    before.iter().any(|message| match &**message {
        PromptMessage::Result { tool, text, ok: true, .. } => {
            tool == "read_file" && written == Some(text)
        }
        PromptMessage::System(_)
        | PromptMessage::User(_)
        | PromptMessage::Assistant { .. }
        | PromptMessage::Result { .. } => false,
    })
}

/// A note on what was tried without success, in the form of a command's result.
fn note(messages: &[Arc<PromptMessage>]) -> Arc<PromptMessage> {
    let mut lines: Vec<String> = Vec::new();
    let mut last = None;
    for message in messages.iter().map(|message| &**message) {
        match message {
            PromptMessage::Assistant { parts, .. } => lines.extend(attempt(parts)),
            PromptMessage::Result { call, tool, text, ok: false, .. } if tool == "shell" => {
                lines.push(format!("It failed: {}", short(&output::as_text(text))));
                last = Some(call);
            }
            PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Result { .. } => {}
        }
    }
    lines.push("The file is as it was before. Find another change.".into());
    let text = lines.join("\n");
    Arc::new(match last {
        Some(call) => {
            let tool = "shell".into();
            PromptMessage::Result { call: call.clone(), tool, text, media: Vec::new(), ok: false }
        }
        None => PromptMessage::System(text),
    })
}

fn attempt(parts: &[AssistantPart]) -> Option<String> {
    let call = assistant_calls(parts).find(|call| call.tool == "edit_file")?;
    let new = call.input.get("new").and_then(Value::as_str)?;
    Some(format!("This was tried: {}", short(new)))
}

fn short(text: &str) -> String {
    text.chars().take(NOTE_CHARS_LIMIT).collect()
}

#[cfg(test)]
mod tests;
