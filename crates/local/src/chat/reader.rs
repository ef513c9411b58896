//! Separates text from tool calls while a model is still writing.
//!
//! A call comes in `<tool_call>` tags, in a fence, or bare. Text that may turn out to be the start of
//! one is held back until that is decided; other text comes out unchanged.

use quintet_kernel::model::RawToolCall;
use serde_json::Value;

use super::call::{may_be_call, object_end, read};
use super::offer::ANSWER;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const FENCE: &str = "```";
/// A fence whose first line is longer holds no call.
const LONGEST_LANGUAGE: usize = 16;

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The names of the tools on offer; without any, everything is text.
    tools: Vec<String>,
    held: String,
    /// White space that is only said if text follows it.
    gap: String,
    calls: Vec<RawToolCall>,
}

/// What a stretch of text is that may begin a call.
enum Verdict {
    /// The first bytes of it are text; their number.
    Text(usize),
    /// The first bytes of it are a call, or a mark of one; their number.
    Call(usize, Option<RawToolCall>),
    /// More has to be seen.
    Open,
}

impl Reader {
    pub(crate) fn new(tools: Vec<String>) -> Self {
        Self { tools, held: String::new(), gap: String::new(), calls: Vec::new() }
    }

    /// Takes what the model wrote; returns what of it can be said by now.
    pub(crate) fn read(&mut self, text: &str) -> String {
        if self.tools.is_empty() {
            return text.into();
        }
        self.held.push_str(text);
        self.sort(false)
    }

    /// The model is done: the rest of the text, and the calls.
    pub(crate) fn finish(mut self) -> (String, Vec<RawToolCall>) {
        let rest = self.sort(true);
        (rest, self.calls)
    }

    fn sort(&mut self, done: bool) -> String {
        let mut said = String::new();
        while !self.held.is_empty() {
            let start = start_of_call(&self.held).unwrap_or(self.held.len());
            self.say(&mut said, start);
            let verdict = if self.held.is_empty() { break } else { self.judge(&self.held, done) };
            match verdict {
                Verdict::Text(length) => self.say(&mut said, length),
                Verdict::Call(length, call) => {
                    self.held.drain(..length);
                    self.take(&mut said, call);
                }
                Verdict::Open if done => self.say(&mut said, self.held.len()),
                Verdict::Open => break,
            }
        }
        said
    }

    /// Keeps a call; an answer that comes as one is text.
    fn take(&mut self, said: &mut String, call: Option<RawToolCall>) {
        match call {
            Some(call) if self.is_answer(&call) => said.push_str(&answered(&call)),
            call => {
                self.gap.clear();
                self.calls.extend(call);
            }
        }
    }

    fn knows(&self, call: &RawToolCall) -> bool {
        self.tools.contains(&call.tool) || self.is_answer(call)
    }

    fn is_answer(&self, call: &RawToolCall) -> bool {
        call.tool == ANSWER && !self.tools.contains(&call.tool)
    }

    fn say(&mut self, said: &mut String, length: usize) {
        let text: String = self.held.drain(..length).collect();
        let body = text.trim_end().len();
        if body > 0 {
            said.push_str(&std::mem::take(&mut self.gap));
            said.push_str(&text[..body]);
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
            self.bare(text)
        } else if done {
            Verdict::Text(text.len())
        } else {
            Verdict::Open
        }
    }

    fn bare(&self, text: &str) -> Verdict {
        if !may_be_call(text) {
            return Verdict::Text(1);
        }
        let Some(end) = object_end(text) else { return Verdict::Open };
        match read(&text[..end]).filter(|call| self.knows(call)) {
            Some(call) => Verdict::Call(end, Some(call)),
            None => Verdict::Text(end),
        }
    }

    /// A fence holds a call and nothing else, or it is text.
    fn fenced(&self, text: &str, done: bool) -> Verdict {
        let first = text.find('\n').unwrap_or(text.len());
        let language = text[FENCE.len()..first].trim();
        let fits = ["json", "xml", "tool_call"].iter().any(|known| known.starts_with(language));
        if !fits || first > FENCE.len() + LONGEST_LANGUAGE {
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

/// The fence ends after the call, or the model forgot to end it.
fn closed(text: &str, end: usize, call: Option<RawToolCall>, done: bool) -> Verdict {
    let rest = text[end..].trim_start();
    let skipped = text.len() - rest.len();
    match rest.strip_prefix(FENCE) {
        Some(_) => Verdict::Call(skipped + FENCE.len(), call),
        None if !done && FENCE.starts_with(rest) => Verdict::Open,
        None => Verdict::Call(end, call),
    }
}

/// A call in tags counts whatever tool it names: the model meant one and is told of its mistake.
fn tagged(text: &str, done: bool) -> Verdict {
    let body = &text[OPEN.len()..];
    let mut from = 0;
    while let Some(at) = body[from..].find(CLOSE) {
        let (inside, end) = (&body[..from + at], OPEN.len() + from + at + CLOSE.len());
        if let Some(call) = read(inside) {
            return Verdict::Call(end, Some(call));
        }
        // The tag may stand in a string of the call.
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

/// The first place where a call may begin, be it with half a mark at the very end.
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
