//! A small rule-based model inside the daemon, to try the daemon without a provider.
//!
//! The demo model is not a language model and states that. Like one, it streams word by word, calls
//! tools and reports their results, so that every part of a turn can be tried.

mod rules;

use std::collections::VecDeque;
use std::time::Duration;

use quintet_kernel::model::{
    Channel, Chunk, Failure, FailureKind, FinishReason, ModelResponse, Prompt, PromptMessage,
    PromptPart, RawToolCall, Usage, assistant_text,
};
use quintet_kernel::port::{BoxFuture, ModelStream};
use tokio::time::{Instant, sleep_until};

/// The name of the only model.
pub const MODEL: &str = "demo";
/// The wait between two words, so that streaming can be seen.
pub const WORD_INTERVAL: Duration = Duration::from_millis(15);

/// A reply: thought, text and tool calls.
#[derive(Debug, Default, PartialEq)]
struct DemoReply {
    thought: String,
    text: String,
    calls: Vec<RawToolCall>,
}

/// An answer that is streamed word by word.
pub(crate) struct DemoStream {
    words: VecDeque<(Channel, String)>,
    answer: Option<ModelResponse>,
    word_interval: Duration,
    due: Instant,
}

impl DemoStream {
    /// The answer to a prompt.
    pub(crate) fn new(prompt: &Prompt, word_interval: Duration) -> Self {
        let reply = rules::reply(prompt);
        let usage = usage(prompt, &reply);
        let finish =
            if reply.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let thought = words(&reply.thought).map(|word| (Channel::Thought, word));
        let text = words(&reply.text).map(|word| (Channel::Text, word));
        Self {
            words: thought.chain(text).collect(),
            answer: Some(ModelResponse::new(finish, reply.calls, usage)),
            word_interval,
            due: Instant::now() + word_interval,
        }
    }

    async fn advance(&mut self) -> Result<Vec<Chunk>, Failure> {
        if self.words.is_empty() {
            let over = Failure { kind: FailureKind::Cut, message: "the answer is over".into() };
            return self.answer.take().map(|answer| vec![Chunk::Finished(answer)]).ok_or(over);
        }
        if !self.word_interval.is_zero() {
            sleep_until(self.due).await;
            self.due = Instant::now() + self.word_interval;
        }
        let word = self.words.pop_front();
        Ok(word.into_iter().map(|(channel, word)| Chunk::Output(channel, word)).collect())
    }
}

impl ModelStream for DemoStream {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(self.advance())
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}

/// Estimated usage: a token is about four bytes.
fn usage(prompt: &Prompt, reply: &DemoReply) -> Usage {
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    let read: usize = prompt.messages.iter().map(|message| length(message)).sum();
    let asked: usize = reply.calls.iter().map(|call| call.tool.len() + call.arguments.len()).sum();
    Usage {
        input: tokens(prompt.system.len() + read),
        output: tokens(reply.thought.len() + reply.text.len() + asked),
        reasoning: tokens(reply.thought.len()),
        estimated: true,
        ..Usage::default()
    }
}

fn length(message: &PromptMessage) -> usize {
    match message {
        PromptMessage::System(text) => text.len(),
        PromptMessage::User(parts) => parts.iter().map(part_length).sum(),
        PromptMessage::Assistant { parts, .. } => assistant_text(parts).len(),
        PromptMessage::Result { text, .. } => text.len(),
    }
}

fn part_length(part: &PromptPart) -> usize {
    match part {
        PromptPart::Text(text) => text.len(),
        PromptPart::Media { content, .. } => content.len(),
    }
}

#[cfg(test)]
mod tests;
