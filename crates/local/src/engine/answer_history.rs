//! The tokens of recent answers, as the model generated them.
//!
//! A session keeps the text and the calls of an answer. Encoded again, these may give other tokens than the
//! model generated (a space, a fence), and the model would have to evaluate everything after the first
//! difference again.

use std::collections::VecDeque;

use llama_cpp_2::token::LlamaToken;
use quintet_kernel::model::RawToolCall;
use serde_json::Value;

/// Number of answers that are kept.
const ANSWER_LIMIT: usize = 256;

/// Recent answers with their tokens.
#[derive(Debug, Default)]
pub(super) struct AnswerHistory {
    answers: VecDeque<Answer>,
}

#[derive(Debug)]
struct Answer {
    text: String,
    calls: Vec<(String, Value)>,
    tokens: Vec<LlamaToken>,
    nudged: bool,
}

impl AnswerHistory {
    /// Stores an answer, and whether the model had to be reminded for it.
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
        self.answers.truncate(ANSWER_LIMIT);
    }

    /// The tokens of an answer; `None` if the answer was corrected since.
    pub(super) fn recall(&self, text: &str, calls: &[(String, Value)]) -> Option<&[LlamaToken]> {
        let tokens = self.find(text, calls).map(|answer| answer.tokens.as_slice());
        tokens.filter(|tokens| !tokens.is_empty())
    }

    /// True if the model had to be reminded for this answer.
    pub(super) fn nudged(&self, text: &str, calls: &[(String, Value)]) -> bool {
        self.find(text, calls).is_some_and(|answer| answer.nudged)
    }

    fn find(&self, text: &str, calls: &[(String, Value)]) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.text == text && answer.calls == calls)
    }
}
