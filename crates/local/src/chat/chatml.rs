//! Writes a prompt in ChatML, the way the models were taught.
//!
//! What people and tools said is kept apart from the marks around it, so that no text can pass for
//! a mark.

use quintet_kernel::model::{Prompt, PromptCall, PromptMessage, PromptPart};
use serde_json::Value;

use super::offer;
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
    Said {
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
    let given = Some(&prompt.system).filter(|given| !given.is_empty());
    let mut pieces: Vec<Piece> =
        given.map(|given| Piece::Plain(format!("\n\n{given}"))).into_iter().collect();
    pieces.extend([END, Piece::Plain("\n".into())]);
    let mut results: Vec<String> = Vec::new();
    for message in &prompt.messages {
        if let PromptMessage::Result { tool, text, ok, .. } = message {
            results.push(result(tool, text, *ok));
            continue;
        }
        tell(&mut pieces, &mut results);
        match message {
            PromptMessage::User(parts) => say(&mut pieces, "user", &text_of(parts)),
            PromptMessage::Assistant { text, calls } => answer(&mut pieces, text, calls),
            PromptMessage::Result { .. } => {}
        }
    }
    tell(&mut pieces, &mut results);
    pieces.extend([START, Piece::Plain("assistant\n".into())]);
    Script { shared, own: pieces }
}

fn say(pieces: &mut Vec<Piece>, who: &str, text: &str) {
    pieces.extend([START, Piece::Plain(format!("{who}\n{text}")), END, Piece::Plain("\n".into())]);
}

/// What came of the calls before, all in one message.
fn tell(pieces: &mut Vec<Piece>, results: &mut Vec<String>) {
    if !results.is_empty() {
        // Small models take a result for another question, unless they are told what it is for.
        results.push(AFTER_RESULTS.into());
        say(pieces, "user", &results.join("\n"));
        results.clear();
    }
}

fn result(tool: &str, text: &str, ok: bool) -> String {
    let done = if ok { "result" } else { "error" };
    format!("<tool_response>\n{tool} {done}:\n{text}\n</tool_response>")
}

fn answer(pieces: &mut Vec<Piece>, text: &str, calls: &[PromptCall]) {
    let calls: Vec<(String, Value)> =
        calls.iter().map(|call| (call.tool.clone(), call.input.clone())).collect();
    let asked = calls.iter().map(|(tool, input)| {
        let (name, input) = (spaced(&tool.as_str().into()), spaced(input));
        format!("<tool_call>\n{{\"name\": {name}, \"arguments\": {input}}}\n</tool_call>")
    });
    let said = Some(text.to_owned()).filter(|text| !text.is_empty());
    let written = said.into_iter().chain(asked).collect::<Vec<_>>().join("\n");
    pieces.extend([START, Piece::Plain("assistant\n".into())]);
    pieces.push(Piece::Said { text: text.into(), calls, written });
    pieces.extend([END, Piece::Plain("\n".into())]);
}

fn text_of(parts: &[PromptPart]) -> String {
    let text = |part: &PromptPart| match part {
        PromptPart::Text(text) => Some(text.clone()),
        PromptPart::Media { .. } => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// What the model is told in every session. It comes first, so that it is read once for all.
fn standing(prompt: &Prompt, weights: &Weights) -> String {
    let own = match weights.family {
        Family::Qwen => "You are Quintet, a helpful assistant that works in the user's workspace.",
        Family::SmolLm2 => "You are a helpful AI assistant named SmolLM2.",
    };
    match weights.tools && !prompt.tools.is_empty() {
        true => format!("{own}\n\n{}", offer::offer(&prompt.tools)),
        false => own.into(),
    }
}

#[cfg(test)]
mod tests;
