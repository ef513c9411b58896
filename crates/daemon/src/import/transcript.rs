//! A transcript in the form of an import: messages with text, thoughts, calls and results.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Source;

/// Maximum length of the text of one part, in bytes; the rest is left out.
const TEXT_LIMIT: usize = 256 * 1024;

/// A conversation with another agent.
#[derive(Debug)]
pub(super) struct Transcript {
    pub(super) source: Source,
    /// The agent's own id of the conversation.
    pub(super) id: String,
    /// The workspace.
    pub(super) cwd: Option<PathBuf>,
    /// The messages, oldest first.
    pub(super) messages: Vec<Value>,
}

impl Transcript {
    pub(super) fn new(source: Source, id: impl Into<String>) -> Self {
        Self { source, id: id.into(), cwd: None, messages: Vec::new() }
    }

    /// Adds text of the user.
    pub(super) fn user(&mut self, text: &str) {
        if !text.trim().is_empty() {
            let part = json!({ "type": "text", "text": shortened(text) });
            self.messages.push(json!({ "role": "user", "parts": [part] }));
        }
    }

    /// Adds text of the model.
    pub(super) fn answer(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.assistant(json!({ "type": "text", "text": shortened(text) }));
        }
    }

    /// Adds a thought of the model.
    pub(super) fn thought(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.assistant(json!({ "type": "thought", "text": shortened(text) }));
        }
    }

    /// Adds a call of the model.
    pub(super) fn call(&mut self, id: &str, tool: &str, input: &Value) {
        let (id, tool) = (plain(id), plain(tool));
        self.assistant(json!({ "type": "call", "id": id, "tool": tool, "input": input }));
    }

    /// Adds the result of a call.
    pub(super) fn result(&mut self, call: &str, text: &str) {
        let text = if text.is_empty() { "(no output)".to_owned() } else { shortened(text) };
        let part = json!({ "type": "text", "text": text });
        self.messages.push(json!({ "role": "tool", "call": plain(call), "parts": [part] }));
    }

    /// Adds to the model's last message, or starts one.
    fn assistant(&mut self, part: Value) {
        let last = self.messages.last_mut().filter(|last| last["role"] == "assistant");
        match last.and_then(|last| last["parts"].as_array_mut()) {
            Some(parts) => parts.push(part),
            None => self.messages.push(json!({ "role": "assistant", "parts": [part] })),
        }
    }
}

/// The text of content that is a string, or a list of blocks with text.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Object(object) => match (object.get("output"), object.get("content")) {
            (Some(inner), _) | (None, Some(inner)) => text_of(inner),
            (None, None) => content.to_string(),
        },
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => content.to_string(),
    }
}

/// A text with only the characters that ids may have.
fn plain(text: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let plain: String = text.chars().take(96).map(allowed).collect();
    if plain.is_empty() { "unnamed".to_owned() } else { plain }
}

fn shortened(text: &str) -> String {
    match text.len().checked_sub(TEXT_LIMIT) {
        None | Some(0) => text.to_owned(),
        Some(left) => {
            let kept = &text[..text.floor_char_boundary(TEXT_LIMIT)];
            format!("{kept}\n[{left} bytes left out]")
        }
    }
}
