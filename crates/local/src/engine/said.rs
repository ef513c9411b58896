//! The model's own words, token by token.
//!
//! What a session keeps of an answer is its text and its calls. Written down again, that may differ
//! from what the model wrote (a space, a fence, other tokens for the same text), and everything after
//! the difference would have to be read anew.

use std::collections::VecDeque;

use llama_cpp_2::token::LlamaToken;
use quintet_kernel::model::RawToolCall;
use serde_json::Value;

/// So many answers are remembered.
const ANSWERS: usize = 256;

/// Recent answers.
#[derive(Debug, Default)]
pub(super) struct Said {
    answers: VecDeque<Answer>,
}

#[derive(Debug)]
struct Answer {
    text: String,
    calls: Vec<(String, Value)>,
    tokens: Vec<LlamaToken>,
    nudged: bool,
}

impl Said {
    /// Keeps an answer, and whether the model had to be asked twice for it.
    pub(super) fn remember(
        &mut self,
        text: String,
        calls: &[RawToolCall],
        (tokens, nudged): (Vec<LlamaToken>, bool),
    ) {
        let call = |call: &RawToolCall| {
            let input = serde_json::from_str(&call.arguments).unwrap_or_default();
            (call.tool.clone(), input)
        };
        let calls = calls.iter().map(call).collect();
        self.answers.push_front(Answer { text, calls, tokens, nudged });
        self.answers.truncate(ANSWERS);
    }

    /// How an answer was written; nothing if it was corrected since.
    pub(super) fn recall(&self, text: &str, calls: &[(String, Value)]) -> Option<&[LlamaToken]> {
        let tokens = self.find(text, calls).map(|answer| answer.tokens.as_slice());
        tokens.filter(|tokens| !tokens.is_empty())
    }

    /// True if the model had to be asked twice for this answer.
    pub(super) fn nudged(&self, text: &str, calls: &[(String, Value)]) -> bool {
        self.find(text, calls).is_some_and(|answer| answer.nudged)
    }

    fn find(&self, text: &str, calls: &[(String, Value)]) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.text == text && answer.calls == calls)
    }
}
