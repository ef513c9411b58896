//! How many tokens a session's next prompt is, by its parts.

use serde_json::Value;

use super::{assemble, system};
use crate::model::{Count, ModelRef, PromptMessage, PromptPart, Said};
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

/// Weighs what a model would be sent now.
pub fn weigh(state: &State) -> Weight {
    let prompt = assemble(state);
    let scales = Scales { state, model: &prompt.model };
    let tools = prompt.tools.iter().map(|spec| {
        scales.text(&spec.name) + scales.text(&spec.description) + scales.json(&spec.schema)
    });
    Weight {
        system: scales.text(&system(state)),
        tools: tools.sum(),
        messages: prompt.messages.iter().map(|message| scales.message(message)).sum(),
    }
}

struct Scales<'a> {
    state: &'a State,
    model: &'a ModelRef,
}

impl Scales<'_> {
    fn text(&self, text: &str) -> Count {
        self.state.rules.models.count(self.model, text)
    }

    fn json(&self, value: &Value) -> Count {
        self.text(&value.to_string())
    }

    fn message(&self, message: &PromptMessage) -> Count {
        match message {
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
