//! Writes a prompt in ChatML, the way the models were taught.
//!
//! What people and tools said is kept apart from the marks around it, so that no text can pass for
//! a mark.

use quintet_kernel::model::{Prompt, PromptCall, PromptMessage, PromptPart};
use quintet_kernel::tool;
use serde_json::Value;

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

const START: Piece = Piece::Mark("<|im_start|>");
const END: Piece = Piece::Mark("<|im_end|>");

/// The whole prompt, up to where the answer begins.
pub(crate) fn render(prompt: &Prompt, weights: &Weights) -> Vec<Piece> {
    let mut pieces = Vec::new();
    say(&mut pieces, "system", &system(prompt, weights));
    let mut results: Vec<String> = Vec::new();
    for message in &prompt.messages {
        if let PromptMessage::Result { text, ok, .. } = message {
            results.push(result(text, *ok));
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
    pieces
}

fn say(pieces: &mut Vec<Piece>, who: &str, text: &str) {
    pieces.extend([START, Piece::Plain(format!("{who}\n{text}")), END, Piece::Plain("\n".into())]);
}

/// What came of the calls before, all in one message.
fn tell(pieces: &mut Vec<Piece>, results: &mut Vec<String>) {
    if !results.is_empty() {
        say(pieces, "user", &results.join("\n"));
        results.clear();
    }
}

fn result(text: &str, ok: bool) -> String {
    let failed = if ok { "" } else { "error: " };
    format!("<tool_response>\n{failed}{text}\n</tool_response>")
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

fn system(prompt: &Prompt, weights: &Weights) -> String {
    let own = match weights.family {
        Family::Qwen => "You are Quintet, a helpful assistant.",
        Family::SmolLm2 => "You are a helpful AI assistant named SmolLM2.",
    };
    let given = if prompt.system.is_empty() { own.into() } else { prompt.system.clone() };
    match weights.tools && !prompt.tools.is_empty() {
        true => format!("{given}\n\n{}", offer(prompt)),
        false => given,
    }
}

fn offer(prompt: &Prompt) -> String {
    let specs: Vec<String> = prompt.tools.iter().map(|spec| signature(spec)).collect();
    format!(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n\
         You are provided with function signatures within <tools></tools> XML tags:\n\
         <tools>\n{}\n</tools>\n\n\
         For each function call, return a json object with function name and arguments within \
         <tool_call></tool_call> XML tags:\n\
         <tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call>",
        specs.join("\n")
    )
}

fn signature(spec: &tool::Spec) -> String {
    format!(
        "{{\"type\": \"function\", \"function\": {{\"name\": {}, \"description\": {}, \"parameters\": {}}}}}",
        spaced(&spec.name.as_str().into()),
        spaced(&spec.description.as_str().into()),
        spaced(&spec.schema),
    )
}

#[cfg(test)]
mod tests;
