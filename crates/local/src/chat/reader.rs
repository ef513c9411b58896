//! Separates text from tool calls while a model is still writing.
//!
//! A call is in `<tool_call>` tags, in a fence, or bare. Text that may be the start of a call is
//! held back until that is decided; other text is returned unchanged.

use quintet_kernel::model::RawToolCall;
use serde_json::Value;

use super::call::{may_be_call, object_end, read};
use super::offer::ANSWER;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const FENCE: &str = "```";
/// A fence with a longer first line contains no call.
const LANGUAGE_LENGTH_LIMIT: usize = 16;

/// Parses one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The names of the offered tools; without any, everything is text.
    tools: Vec<String>,
    held: String,
    /// White space that is returned only if text follows.
    gap: String,
    calls: Vec<RawToolCall>,
}

/// The classification of text that may start a call.
enum Verdict {
    /// This many bytes are text.
    Text(usize),
    /// This many bytes are a call, or its tag.
    Call(usize, Option<RawToolCall>),
    /// Undecided: more text is needed.
    Open,
}

impl Reader {
    pub(crate) fn new(tools: Vec<String>) -> Self {
        Self { tools, held: String::new(), gap: String::new(), calls: Vec::new() }
    }

    /// Adds output of the model; returns the text that is certain by now.
    pub(crate) fn read(&mut self, text: &str) -> String {
        if self.tools.is_empty() {
            return text.into();
        }
        self.held.push_str(text);
        self.process(false)
    }

    /// The model has finished: returns the rest of the text, and the calls.
    pub(crate) fn finish(mut self) -> (String, Vec<RawToolCall>) {
        let rest = self.process(true);
        (rest, self.calls)
    }

    fn process(&mut self, done: bool) -> String {
        let mut output = String::new();
        while !self.held.is_empty() {
            let start = start_of_call(&self.held).unwrap_or(self.held.len());
            self.emit(&mut output, start);
            let verdict = if self.held.is_empty() { break } else { self.judge(&self.held, done) };
            match verdict {
                Verdict::Text(length) => self.emit(&mut output, length),
                Verdict::Call(length, call) => {
                    self.held.drain(..length);
                    self.take(&mut output, call);
                }
                Verdict::Open if done => self.emit(&mut output, self.held.len()),
                Verdict::Open => break,
            }
        }
        output
    }

    /// Stores a call; an answer in the form of a call is text.
    fn take(&mut self, output: &mut String, call: Option<RawToolCall>) {
        match call {
            Some(call) if self.is_answer(&call) => output.push_str(&answered(&call)),
            call => {
                self.gap.clear();
                self.calls.extend(call);
            }
        }
    }

    fn is_known_tool(&self, call: &RawToolCall) -> bool {
        self.tools.contains(&call.tool) || self.is_answer(call)
    }

    fn is_answer(&self, call: &RawToolCall) -> bool {
        call.tool == ANSWER && !self.tools.contains(&call.tool)
    }

    fn emit(&mut self, output: &mut String, length: usize) {
        let text: String = self.held.drain(..length).collect();
        let body = text.trim_end().len();
        if body > 0 {
            output.push_str(&std::mem::take(&mut self.gap));
            output.push_str(&text[..body]);
        }
        self.gap.push_str(&text[body..]);
    }

    fn judge(&self, text: &str, done: bool) -> Verdict {
        if text.starts_with(FENCE) {
            self.fenced(text, done)
        } else if text.starts_with(CLOSE) {
            Verdict::Call(CLOSE.len(), None)
        } else if text.starts_with(OPEN) {
            tagged(text, done)
        } else if text.starts_with('{') {
            self.bare_call(text)
        } else if done {
            Verdict::Text(text.len())
        } else {
            Verdict::Open
        }
    }

    fn bare_call(&self, text: &str) -> Verdict {
        if !may_be_call(text) {
            return Verdict::Text(1);
        }
        let Some(end) = object_end(text) else { return Verdict::Open };
        match read(&text[..end]).filter(|call| self.is_known_tool(call)) {
            Some(call) => Verdict::Call(end, Some(call)),
            None => Verdict::Text(end),
        }
    }

    /// A fence contains exactly a call, or it is text.
    fn fenced(&self, text: &str, done: bool) -> Verdict {
        let first = text.find('\n').unwrap_or(text.len());
        let language = text[FENCE.len()..first].trim();
        let fits = ["json", "xml", "tool_call"].iter().any(|known| known.starts_with(language));
        if !fits || first > FENCE.len() + LANGUAGE_LENGTH_LIMIT {
            return Verdict::Text(first);
        }
        let inside = text[first..].trim_start();
        let begin = text.len() - inside.len();
        let inner = match inside.chars().next() {
            None => Verdict::Open,
            Some('{' | '<') => self.judge(inside, done),
            Some(_) => Verdict::Text(0),
        };
        match inner {
            Verdict::Call(length, call) => closed(text, begin + length, call, done),
            Verdict::Text(_) => Verdict::Text(begin),
            Verdict::Open => Verdict::Open,
        }
    }
}

fn answered(call: &RawToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    arguments["text"].as_str().unwrap_or_default().trim().into()
}

/// The fence ends after the call, or the model did not close it.
fn closed(text: &str, end: usize, call: Option<RawToolCall>, done: bool) -> Verdict {
    let rest = text[end..].trim_start();
    let skipped = text.len() - rest.len();
    match rest.strip_prefix(FENCE) {
        Some(_) => Verdict::Call(skipped + FENCE.len(), call),
        None if !done && FENCE.starts_with(rest) => Verdict::Open,
        None => Verdict::Call(end, call),
    }
}

/// A tagged call counts even if its tool is unknown: the model then gets an error.
fn tagged(text: &str, done: bool) -> Verdict {
    let body = &text[OPEN.len()..];
    let mut from = 0;
    while let Some(at) = body[from..].find(CLOSE) {
        let (inside, end) = (&body[..from + at], OPEN.len() + from + at + CLOSE.len());
        if let Some(call) = read(inside) {
            return Verdict::Call(end, Some(call));
        }
        // The tag may be inside a string of the call.
        if object_end(inside.trim_start()).is_some() || !inside.trim_start().starts_with('{') {
            return Verdict::Text(end);
        }
        from += at + CLOSE.len();
    }
    match read(body).filter(|_| done) {
        Some(call) => Verdict::Call(text.len(), Some(call)),
        None => Verdict::Open,
    }
}

/// The first position where a call may start; a partial marker at the end counts.
fn start_of_call(text: &str) -> Option<usize> {
    let begins = |(at, letter): (usize, char)| {
        let rest = &text[at..];
        let marked = |mark: &str| rest.starts_with(mark) || mark.starts_with(rest);
        let found = match letter {
            '<' => marked(OPEN) || marked(CLOSE),
            '`' => marked(FENCE),
            '{' => may_be_call(rest),
            _ => false,
        };
        found.then_some(at)
    };
    text.char_indices().find_map(begins)
}

#[cfg(test)]
mod tests;
