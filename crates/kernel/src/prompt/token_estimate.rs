//! Token counts of a session's next prompt.

use serde_json::Value;

use super::shorten::Shorten;
use super::{HistoryEntry, assemble};
use crate::message::{Part, Role};
use crate::model::{AssistantPart, Prompt, PromptMessage, PromptPart, TokenCount};
use crate::port::ModelProfiles;
use crate::session::State;

/// Estimated tokens of a picture or another file.
const FILE_TOKENS: TokenCount = TokenCount { tokens: 1_000, exact: false };

/// Token counts of a prompt. Each API adds a few tokens of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptTokens {
    /// The system prompt with the workspace description.
    pub system: TokenCount,
    /// The offered tools.
    pub tools: TokenCount,
    /// The conversation.
    pub messages: TokenCount,
}

impl PromptTokens {
    /// The sum.
    pub fn total(self) -> TokenCount {
        self.system + self.tools + self.messages
    }
}

/// Counts the prompt that would be sent now, with the model's tokenizer if it is known.
pub fn count_prompt_tokens(state: &State, models: &dyn ModelProfiles) -> PromptTokens {
    let prompt = assemble(state);
    prompt_tokens(&prompt, &|text| models.count(&prompt.model, text))
}

/// An estimate for a prompt.
pub(crate) fn estimate_tokens(prompt: &Prompt) -> u64 {
    prompt_tokens(prompt, &TokenCount::guess).total().tokens
}

/// An estimate for one message of a prompt.
pub(super) fn estimate_message_tokens(message: &PromptMessage) -> u64 {
    TokenCounter { count: &TokenCount::guess }.message(message).tokens
}

fn prompt_tokens(prompt: &Prompt, count: &dyn Fn(&str) -> TokenCount) -> PromptTokens {
    let scales = TokenCounter { count };
    let tools = prompt.tools.iter().map(|spec| {
        scales.text(&spec.name) + scales.text(&spec.description) + scales.json(&spec.schema)
    });
    PromptTokens {
        system: scales.text(&prompt.system),
        tools: tools.sum(),
        messages: prompt.messages.iter().map(|message| scales.message(message)).sum(),
    }
}

/// Estimates for messages, each shortened as in a prompt. Consecutive results belong to one
/// response.
pub(crate) fn estimate_entry_tokens(entries: &[HistoryEntry<'_>], shorten: Shorten) -> Vec<u64> {
    let is_result = |entry: &HistoryEntry<'_>| entry.message.role == Role::Tool;
    let steps = entries.chunk_by(|one, next| is_result(one) && is_result(next));
    let guess = |step: &[HistoryEntry<'_>]| {
        let guess = |entry| estimate_one_entry(entry, step.len(), shorten);
        step.iter().map(guess).collect::<Vec<u64>>()
    };
    steps.flat_map(guess).collect()
}

/// An estimate for a message; a result is one of `together`.
fn estimate_one_entry(
    HistoryEntry { at, message, .. }: &HistoryEntry<'_>,
    together: usize,
    shorten: Shorten,
) -> u64 {
    let old = shorten.is_old(*at);
    let most = match message.role {
        Role::Tool => shorten.result_bytes(*at, together),
        Role::User | Role::Assistant | Role::System => usize::MAX,
    };
    let guess = |text: &str| TokenCount::guess(&text[..text.floor_char_boundary(most)]).tokens;
    let part = |part: &Part| match part {
        Part::Text(_) if message.wording.is_some() => 0,
        Part::Text(text) | Part::Context(text) | Part::Thought(text) => guess(text),
        Part::Call { tool, input, .. } => guess(tool) + guess(&input.to_string()),
        Part::Media { .. } if old => 0,
        Part::Media { .. } => FILE_TOKENS.tokens,
    };
    let wording = message.wording.iter().map(|wording| guess(wording));
    let sealed = message.sealed.iter().map(|sealed| guess(&sealed.content.to_string()));
    let parts = message.parts.iter().map(part);
    parts.chain(wording).chain(sealed).fold(0, u64::saturating_add)
}

struct TokenCounter<'a> {
    count: &'a dyn Fn(&str) -> TokenCount,
}

impl TokenCounter<'_> {
    fn text(&self, text: &str) -> TokenCount {
        (self.count)(text)
    }

    fn json(&self, value: &Value) -> TokenCount {
        self.text(&value.to_string())
    }

    fn message(&self, message: &PromptMessage) -> TokenCount {
        match message {
            PromptMessage::System(text) => self.text(text),
            PromptMessage::User(parts) => parts.iter().map(|part| self.part(part)).sum(),
            PromptMessage::Assistant { parts, .. } => {
                parts.iter().map(|assistant_part| self.assistant_part(assistant_part)).sum()
            }
            PromptMessage::Result { text, media, .. } => {
                self.text(text) + media.iter().map(|part| self.part(part)).sum()
            }
        }
    }

    fn part(&self, part: &PromptPart) -> TokenCount {
        match part {
            PromptPart::Text(text) => self.text(text),
            PromptPart::Media { .. } => FILE_TOKENS,
        }
    }

    fn assistant_part(&self, assistant_part: &AssistantPart) -> TokenCount {
        match assistant_part {
            AssistantPart::Text(text) | AssistantPart::Thought(text) => self.text(text),
            // Only the provider can read sealed data, so their tokens cannot be counted.
            AssistantPart::Sealed(value) => TokenCount { exact: false, ..self.json(value) },
            AssistantPart::Call(call) => self.text(&call.tool) + self.json(&call.input),
        }
    }
}
