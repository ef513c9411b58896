//! Tracks the screen of the original client: where in a line its cursor is.
//!
//! That client prints the flat copies of text and blocks as they arrive: code and diffs in a frame,
//! everything else unchanged. So the line breaks between them must be in the copies.

use serde_json::Value;

use super::blocks::BlockKind;

/// How a client handles messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// A client that distinguishes queries.
    #[default]
    Any,
    /// The original client: it reads only while it waits for an answer of its own, prints everything that
    /// arrives, and takes the first end as the end of that answer.
    Original,
}

/// The screen that an answer is printed on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Screen {
    position: LinePosition,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LinePosition {
    #[default]
    LineStart,
    /// In a line of prose, which may continue.
    Prose,
    /// After something complete.
    AfterBlock,
}

impl Screen {
    /// The text to print for prose.
    pub(super) fn prose(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let new_line = self.position == LinePosition::AfterBlock && !text.starts_with('\n');
        self.position = after(text, LinePosition::Prose);
        with_line_break(new_line, text)
    }

    /// The text to print for a block.
    pub(super) fn block(&mut self, kind: BlockKind, text: &str) -> String {
        match kind {
            // These get a frame, which starts on its own line.
            BlockKind::Code => self.position = LinePosition::AfterBlock,
            BlockKind::Diff => self.position = LinePosition::LineStart,
            BlockKind::Text | BlockKind::Error | BlockKind::ToolOutput | BlockKind::Interactive => {
                if text.is_empty() {
                    return String::new();
                }
                let new_line = self.position != LinePosition::LineStart;
                self.position = after(text, LinePosition::AfterBlock);
                return with_line_break(new_line, text);
            }
        }
        text.to_owned()
    }

    /// A new model call starts.
    pub(super) fn step(&mut self) {
        if self.position == LinePosition::Prose {
            self.position = LinePosition::AfterBlock;
        }
    }

    /// Another answer was printed before.
    pub(super) fn follow_other(&mut self) {
        self.position = LinePosition::AfterBlock;
    }

    /// A question was sent, which the client ends with a line break.
    pub(super) fn question(&mut self) {
        self.position = LinePosition::LineStart;
    }
}

fn after(text: &str, otherwise: LinePosition) -> LinePosition {
    if text.ends_with('\n') { LinePosition::LineStart } else { otherwise }
}

fn with_line_break(new_line: bool, text: &str) -> String {
    if new_line { format!("\n{text}") } else { text.to_owned() }
}

/// The output of commands, if a result contains it as JSON; any other text unchanged.
pub(super) fn plain_output(text: &str) -> String {
    match serde_json::from_str(text) {
        Ok(Value::Array(all)) if !all.is_empty() && all.iter().all(is_command) => {
            all.iter().map(|one| format!("$ {}\n{}", text_in(one, "cmd"), printed(one))).collect()
        }
        Ok(one) if is_command(&one) => printed(&one),
        _ => text.to_owned(),
    }
}

fn is_command(value: &Value) -> bool {
    value["cmd"].is_string() && value["exit_code"].is_i64() && value["stdout"].is_string()
}

fn printed(command: &Value) -> String {
    let mut text = String::new();
    for part in ["stdout", "stderr"] {
        let part = text_in(command, part);
        text.push_str(part);
        if !part.is_empty() && !part.ends_with('\n') {
            text.push('\n');
        }
    }
    match command["exit_code"].as_i64() {
        Some(code) if code != 0 => text.push_str(&format!("exit code {code}\n")),
        _ => {}
    }
    text
}

fn text_in<'a>(command: &'a Value, name: &str) -> &'a str {
    command[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
