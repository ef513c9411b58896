//! Formats a prompt in ChatML, the format that the models were trained on.
//!
//! Text of users and tools is kept separate from control tokens, so that no text can imitate one.

use quintet_kernel::model::{
    AssistantPart, Prompt, PromptMessage, PromptPart, assistant_calls, assistant_text,
};
use serde_json::Value;

use super::offer;
use super::small::intent::{asks_workspace, wants_change};
use super::small::{self, Hints};
use super::spaced::spaced;
use crate::weights::{Family, Weights};

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// A control token.
    Mark(&'static str),
    /// Plain text, even if it looks like a control token.
    Plain(String),
    /// An earlier answer of the model: its original tokens, if they are still known, otherwise
    /// `written`.
    AnswerHistory {
        /// The text.
        text: String,
        /// The calls.
        calls: Vec<(String, Value)>,
        /// The text form of both.
        written: String,
    },
}

const AFTER_RESULTS: &str = "Use this to answer my question in plain words now. \
Call another function only if the question cannot be answered without it.";
const START: Piece = Piece::Mark("<|im_start|>");
const END: Piece = Piece::Mark("<|im_end|>");

/// A formatted prompt.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The beginning, which all sessions with the same tools share.
    pub(crate) shared: Vec<Piece>,
    /// The rest, up to the beginning of the answer.
    pub(crate) own: Vec<Piece>,
}

/// Formats a prompt.
pub(crate) fn render(prompt: &Prompt, weights: &Weights) -> Script {
    let shared = vec![START, Piece::Plain(format!("system\n{}", system_prompt(prompt, weights)))];
    let system = prompt.system.as_str();
    let system = if weights.small { small::brief_system(system) } else { system };
    let given = Some(system).filter(|given| !given.is_empty());
    let mut pieces: Vec<Piece> =
        given.map(|given| Piece::Plain(format!("\n\n{given}"))).into_iter().collect();
    pieces.extend([END, Piece::Plain("\n".into())]);
    let mut results = Results { hints: weights.small.then(Hints::default), ..Results::default() };
    let shortened = weights.small.then(|| small::attempts::shortened_history(&prompt.messages));
    let messages = shortened.as_ref().unwrap_or(&prompt.messages);
    for message in messages.iter().map(|message| &**message) {
        if let PromptMessage::Result { tool, text, media, ok, .. } = message {
            let shown = [text.clone(), text_of(media)].join("\n");
            results.add(tool, shown.trim_end(), *ok);
            continue;
        }
        results.flush(&mut pieces);
        match message {
            PromptMessage::System(text) => push_message(&mut pieces, "system", text),
            PromptMessage::User(parts) => {
                let text = text_of(parts);
                results.on_user_message(&text);
                push_message(&mut pieces, "user", &text);
            }
            PromptMessage::Assistant { parts, .. } => answer(&mut pieces, parts),
            PromptMessage::Result { .. } => {}
        }
    }
    results.flush(&mut pieces);
    pieces.extend([START, Piece::Plain("assistant\n".into())]);
    Script { shared, own: pieces }
}

/// The end of an answer, a user message about it, and the beginning of another answer.
pub(crate) fn interjection(text: &str) -> Vec<Piece> {
    let mut pieces = vec![END, Piece::Plain("\n".into())];
    push_message(&mut pieces, "user", text);
    pieces.extend([START, Piece::Plain("assistant\n".into())]);
    pieces
}

fn push_message(pieces: &mut Vec<Piece>, who: &str, text: &str) {
    pieces.extend([START, Piece::Plain(format!("{who}\n{text}")), END, Piece::Plain("\n".into())]);
}

/// The results of the last calls, collected into one message.
#[derive(Default)]
struct Results {
    texts: Vec<String>,
    failed: bool,
    /// The hints for a small model.
    hints: Option<Hints>,
    /// The last message of the user.
    request: String,
}

impl Results {
    fn on_user_message(&mut self, text: &str) {
        self.request = text.into();
        if let Some(hints) = &mut self.hints {
            *hints = Hints {
                wants_change: wants_change(text),
                asks_workspace: asks_workspace(text),
                ..Hints::default()
            };
        }
    }

    fn add(&mut self, tool: &str, text: &str, ok: bool) {
        self.failed |= !ok;
        match &mut self.hints {
            Some(hints) => {
                hints.changed |= ok && small::request::changes(tool);
                hints.repairs_code |= ok && small::request::repairs(&self.request, tool, text);
                hints.missing = small::request::stays_missing(hints.missing, tool, text, ok);
                self.texts.push(result(tool, &small::brief(tool, text), ok));
            }
            None => self.texts.push(result(tool, text, ok)),
        }
    }

    fn flush(&mut self, pieces: &mut Vec<Piece>) {
        if self.texts.is_empty() {
            return;
        }
        // Without a hint, small models mistake a result for another question.
        let hint = self.hints.map_or(AFTER_RESULTS, |hints| hints.after(!self.failed));
        self.texts.push(hint.into());
        if self.hints.is_some_and(|hints| !hints.wants_change) {
            self.texts.push(Hints::question(&self.request));
        }
        push_message(pieces, "user", &self.texts.join("\n"));
        self.texts.clear();
        self.failed = false;
    }
}

fn result(tool: &str, text: &str, ok: bool) -> String {
    let done = if ok { "result" } else { "error" };
    format!("<tool_response>\n{tool} {done}:\n{text}\n</tool_response>")
}

fn answer(pieces: &mut Vec<Piece>, parts: &[AssistantPart]) {
    let text = assistant_text(parts);
    let calls: Vec<(String, Value)> =
        assistant_calls(parts).map(|call| (call.tool.clone(), call.input.clone())).collect();
    let call_texts = calls.iter().map(|(tool, input)| {
        let (name, input) = (spaced(&tool.as_str().into()), spaced(input));
        format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {input}}}\n</tool_call>")
    });
    let answer_text = Some(text.clone()).filter(|text| !text.is_empty());
    let written = answer_text.into_iter().chain(call_texts).collect::<Vec<_>>().join("\n");
    pieces.extend([START, Piece::Plain("assistant\n".into())]);
    pieces.push(Piece::AnswerHistory { text, calls, written });
    pieces.extend([END, Piece::Plain("\n".into())]);
}

fn text_of(parts: &[PromptPart]) -> String {
    let text = |part: &PromptPart| match part {
        PromptPart::Text(text) => Some(text.clone()),
        PromptPart::Media { name, mime, content, .. } if is_text(mime) => {
            Some(format!("{name}:\n{}", String::from_utf8_lossy(content)))
        }
        PromptPart::Media { .. } => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// True if a file of this type is sent as text.
pub(crate) fn is_text(mime: &str) -> bool {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    mime.starts_with("text/") || mime == "application/json"
}

/// The system prompt. It comes first, so that all sessions share it.
fn system_prompt(prompt: &Prompt, weights: &Weights) -> String {
    let own = match weights.family {
        Family::Qwen => "You are Quintet, a helpful assistant that works in the user's workspace.",
        Family::SmolLm2 => "You are a helpful AI assistant named SmolLM2.",
    };
    match weights.tools && prompt.may_call && !prompt.tools.is_empty() {
        true if weights.small => format!("{own}\n\n{}", small::offer(prompt)),
        true => format!("{own}\n\n{}", offer::offer(&prompt.tools)),
        false => own.into(),
    }
}

#[cfg(test)]
mod tests;
