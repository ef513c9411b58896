//! How many tokens a session's next prompt is, by its parts.

use serde_json::Value;

use super::shorten::Shorten;
use super::{Entry, assemble};
use crate::message::{Part, Role};
use crate::model::{Count, Prompt, PromptMessage, PromptPart, Said};
use crate::port::Profiles;
use crate::session::State;

/// Tokens that a picture or another file takes, roughly.
const FILE: Count = Count { tokens: 1_000, exact: false };

/// The tokens of a prompt. How an API writes the parts down adds a few to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Standing instructions and what is told of the workspace with them.
    pub system: Count,
    /// The tools on offer.
    pub tools: Count,
    /// The conversation.
    pub messages: Count,
}

impl Weight {
    /// All of it.
    pub fn total(self) -> Count {
        self.system + self.tools + self.messages
    }
}

/// Weighs what a model would be sent now, as whoever knows its tokenizer counts.
pub fn weigh(state: &State, models: &dyn Profiles) -> Weight {
    let prompt = assemble(state);
    weight(&prompt, &|text| models.count(&prompt.model, text))
}

/// A guess at the tokens of a prompt.
pub(crate) fn guess(prompt: &Prompt) -> u64 {
    weight(prompt, &Count::guess).total().tokens
}

/// A guess at the tokens of one message of a prompt.
pub(super) fn guess_message(message: &PromptMessage) -> u64 {
    Scales { count: &Count::guess }.message(message).tokens
}

fn weight(prompt: &Prompt, count: &dyn Fn(&str) -> Count) -> Weight {
    let scales = Scales { count };
    let tools = prompt.tools.iter().map(|spec| {
        scales.text(&spec.name) + scales.text(&spec.description) + scales.json(&spec.schema)
    });
    Weight {
        system: scales.text(&prompt.system),
        tools: tools.sum(),
        messages: prompt.messages.iter().map(|message| scales.message(message)).sum(),
    }
}

/// Guesses at the tokens of messages, each shortened as a prompt has it. Results that follow each
/// other belong to one answer.
pub(crate) fn guess_entries(entries: &[Entry<'_>], shorten: Shorten) -> Vec<u64> {
    let is_result = |entry: &Entry<'_>| entry.message.role == Role::Tool;
    let steps = entries.chunk_by(|one, next| is_result(one) && is_result(next));
    let guess = |step: &[Entry<'_>]| {
        let guess = |entry| guess_entry(entry, step.len(), shorten);
        step.iter().map(guess).collect::<Vec<u64>>()
    };
    steps.flat_map(guess).collect()
}

/// A guess at the tokens of a message; a result is one of `together`.
fn guess_entry(Entry { at, message, .. }: &Entry<'_>, together: usize, shorten: Shorten) -> u64 {
    let old = shorten.is_old(*at);
    let most = match message.role {
        Role::Tool => shorten.result_bytes(*at, together),
        Role::User | Role::Assistant | Role::System => usize::MAX,
    };
    let guess = |text: &str| Count::guess(&text[..text.floor_char_boundary(most)]).tokens;
    let part = |part: &Part| match part {
        Part::Text(_) if message.wording.is_some() => 0,
        Part::Text(text) | Part::Context(text) | Part::Thought(text) => guess(text),
        Part::Call { tool, input, .. } => guess(tool) + guess(&input.to_string()),
        Part::Media { .. } if old => 0,
        Part::Media { .. } => FILE.tokens,
    };
    let wording = message.wording.iter().map(|wording| guess(wording));
    let sealed = message.sealed.iter().map(|sealed| guess(&sealed.content.to_string()));
    let parts = message.parts.iter().map(part);
    parts.chain(wording).chain(sealed).fold(0, u64::saturating_add)
}

struct Scales<'a> {
    count: &'a dyn Fn(&str) -> Count,
}

impl Scales<'_> {
    fn text(&self, text: &str) -> Count {
        (self.count)(text)
    }

    fn json(&self, value: &Value) -> Count {
        self.text(&value.to_string())
    }

    fn message(&self, message: &PromptMessage) -> Count {
        match message {
            PromptMessage::System(text) => self.text(text),
            PromptMessage::User(parts) => parts.iter().map(|part| self.part(part)).sum(),
            PromptMessage::Assistant { parts, .. } => {
                parts.iter().map(|said| self.said(said)).sum()
            }
            PromptMessage::Result { text, media, .. } => {
                self.text(text) + media.iter().map(|part| self.part(part)).sum()
            }
        }
    }

    fn part(&self, part: &PromptPart) -> Count {
        match part {
            PromptPart::Text(text) => self.text(text),
            PromptPart::Media { .. } => FILE,
        }
    }

    fn said(&self, said: &Said) -> Count {
        match said {
            Said::Text(text) | Said::Thought(text) => self.text(text),
            // Only its author can read it, so nobody else can count it.
            Said::Sealed(value) => Count { exact: false, ..self.json(value) },
            Said::Call(call) => self.text(&call.tool) + self.json(&call.input),
        }
    }
}
