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

/// A stretch of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// A mark, one token to the model.
    Mark(&'static str),
    /// Text that is only text.
    Plain(String),
    /// An earlier answer of the model: as it was written, if that is still known, or else like this.
    AnswerHistory {
        /// What it said.
        text: String,
        /// What it asked for.
        calls: Vec<(String, Value)>,
        /// How that is written.
        written: String,
    },
}

const AFTER_RESULTS: &str = "Use this to answer my question in plain words now. \
Call another function only if the question cannot be answered without it.";
const START: Piece = Piece::Mark("<|im_start|>");
const END: Piece = Piece::Mark("<|im_end|>");

/// A prompt, written down.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// The beginning that all sessions with the same tools have in common.
    pub(crate) shared: Vec<Piece>,
    /// The rest, up to where the answer begins.
    pub(crate) own: Vec<Piece>,
}

/// Writes a prompt down.
pub(crate) fn render(prompt: &Prompt, weights: &Weights) -> Script {
    let shared = vec![START, Piece::Plain(format!("system\n{}", standing(prompt, weights)))];
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
        results.tell(&mut pieces);
        match message {
            PromptMessage::System(text) => say(&mut pieces, "system", text),
            PromptMessage::User(parts) => {
                let text = text_of(parts);
                results.asked(&text);
                say(&mut pieces, "user", &text);
            }
            PromptMessage::Assistant { parts, .. } => answer(&mut pieces, parts),
            PromptMessage::Result { .. } => {}
        }
    }
    results.tell(&mut pieces);
    pieces.extend([START, Piece::Plain("assistant\n".into())]);
    Script { shared, own: pieces }
}

/// The end of an answer, a word of the user on it, and the beginning of another answer.
pub(crate) fn interjection(text: &str) -> Vec<Piece> {
    let mut pieces = vec![END, Piece::Plain("\n".into())];
    say(&mut pieces, "user", text);
    pieces.extend([START, Piece::Plain("assistant\n".into())]);
    pieces
}

fn say(pieces: &mut Vec<Piece>, who: &str, text: &str) {
    pieces.extend([START, Piece::Plain(format!("{who}\n{text}")), END, Piece::Plain("\n".into())]);
}

/// What came of the calls before, all in one message.
#[derive(Default)]
struct Results {
    texts: Vec<String>,
    failed: bool,
    /// What a small model is told to do with them.
    hints: Option<Hints>,
    /// The last message of the user.
    request: String,
}

impl Results {
    fn asked(&mut self, text: &str) {
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

    fn tell(&mut self, pieces: &mut Vec<Piece>) {
        if self.texts.is_empty() {
            return;
        }
        // Small models take a result for another question, unless they are told what it is for.
        let hint = self.hints.map_or(AFTER_RESULTS, |hints| hints.after(!self.failed));
        self.texts.push(hint.into());
        if self.hints.is_some_and(|hints| !hints.wants_change) {
            self.texts.push(Hints::question(&self.request));
        }
        say(pieces, "user", &self.texts.join("\n"));
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
    let asked = calls.iter().map(|(tool, input)| {
        let (name, input) = (spaced(&tool.as_str().into()), spaced(input));
        format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {input}}}\n</tool_call>")
    });
    let said = Some(text.clone()).filter(|text| !text.is_empty());
    let written = said.into_iter().chain(asked).collect::<Vec<_>>().join("\n");
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

/// Whether a file of this type can be read like a message.
pub(crate) fn is_text(mime: &str) -> bool {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    mime.starts_with("text/") || mime == "application/json"
}

/// What the model is told in every session. It comes first, so that it is read once for all.
fn standing(prompt: &Prompt, weights: &Weights) -> String {
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
