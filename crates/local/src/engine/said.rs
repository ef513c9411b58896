//! The model's own words, token by token.
//!
//! What a session keeps of an answer is its text and its calls. Written down again, that may differ
//! from what the model wrote (a space, a fence, other tokens for the same text), and everything after
//! the difference would have to be read anew.

use std::collections::VecDeque;

use llama_cpp_2::token::LlamaToken;
use quintet_kernel::model::AskedCall;
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
}

impl Said {
    pub(super) fn remember(&mut self, text: String, calls: &[AskedCall], tokens: Vec<LlamaToken>) {
        let call = |call: &AskedCall| {
            let input = serde_json::from_str(&call.arguments).unwrap_or_default();
            (call.tool.clone(), input)
        };
        let calls = calls.iter().map(call).collect();
        self.answers.push_front(Answer { text, calls, tokens });
        self.answers.truncate(ANSWERS);
    }

    /// How an answer was written.
    pub(super) fn recall(&self, text: &str, calls: &[(String, Value)]) -> Option<&[LlamaToken]> {
        let same = |answer: &&Answer| answer.text == text && answer.calls == calls;
        self.answers.iter().find(same).map(|answer| answer.tokens.as_slice())
    }
}
