//! Tracks what the original client prints, and the column it is at.
//!
//! That client prints the flat copies as they arrive: prose unchanged, code and diffs in a frame, everything
//! else unchanged. So the line breaks between them must be in the copies.

use serde_json::Value;

use super::blocks::Kind;

/// How a client reads what it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// A client that tells queries apart.
    #[default]
    Any,
    /// The original: it reads only while it waits for an answer of its own, shows whatever comes, and
    /// takes the first end for the end of that answer.
    Original,
}

/// The page that an answer is printed on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    position: LinePosition,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LinePosition {
    #[default]
    LineStart,
    /// Within a line of prose, which may go on.
    Prose,
    /// Behind something that is whole.
    Behind,
}

impl Page {
    /// Prose as it is to be printed.
    pub(super) fn prose(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let new_line = self.position == LinePosition::Behind && !text.starts_with('\n');
        self.position = after(text, LinePosition::Prose);
        broken(new_line, text)
    }

    /// What a block says, as it is to be printed.
    pub(super) fn block(&mut self, kind: Kind, text: &str) -> String {
        match kind {
            // These get a frame, which begins on a line of its own.
            Kind::Code => self.position = LinePosition::Behind,
            Kind::Diff => self.position = LinePosition::LineStart,
            Kind::Text | Kind::Error | Kind::ToolOutput | Kind::Interactive => {
                if text.is_empty() {
                    return String::new();
                }
                let new_line = self.position != LinePosition::LineStart;
                self.position = after(text, LinePosition::Behind);
                return broken(new_line, text);
            }
        }
        text.to_owned()
    }

    /// A model begins to speak anew.
    pub(super) fn step(&mut self) {
        if self.position == LinePosition::Prose {
            self.position = LinePosition::Behind;
        }
    }

    /// Something else is on the page already.
    pub(super) fn follow(&mut self) {
        self.position = LinePosition::Behind;
    }

    /// A question was asked, which the client ends with a line of its own.
    pub(super) fn question(&mut self) {
        self.position = LinePosition::LineStart;
    }
}

fn after(text: &str, otherwise: LinePosition) -> LinePosition {
    if text.ends_with('\n') { LinePosition::LineStart } else { otherwise }
}

fn broken(new_line: bool, text: &str) -> String {
    if new_line { format!("\n{text}") } else { text.to_owned() }
}

/// What commands printed, where their results say it in JSON; anything else as it is.
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
