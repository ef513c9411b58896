//! Parses an answer event by event.

use quintet_kernel::model::{
    Channel, Chunk, FinishReason, ModelResponse, SealPosition, Sealed, Usage,
};

use super::details::Details;
use super::{calls, wire};
use crate::answer_parser::{AnswerParser, AnswerState, OutputWriter, malformed};
use crate::calls::Calls;
use crate::provider_error;
use crate::retry::AttemptError;
use crate::template::Template;

/// Parses the events of one answer into an [`ModelResponse`].
#[derive(Debug, Default)]
pub(super) struct Parser {
    template: Template,
    writer: OutputWriter,
    calls: Calls,
    details: Details,
    usage: Usage,
    finish: Option<FinishReason>,
    refused: bool,
    done: bool,
}

impl AnswerParser for Parser {
    fn take(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        if let Some((channel, text)) = self.template.read(data) {
            self.writer.write(channel, text, out);
            return Ok(());
        }
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        let event: wire::Event<'_> = serde_json::from_slice(data).map_err(malformed)?;
        if let Some((channel, text)) = only_output(&event) {
            self.template.remember(data, channel, text);
        }
        self.take_event(event, out)
    }

    fn state(&self) -> AnswerState {
        match (self.done, &self.finish) {
            (true, _) => AnswerState::Done,
            (false, Some(_)) => AnswerState::Complete,
            (false, None) if self.writer.written > 0 || !self.calls.is_empty() => {
                AnswerState::Begun
            }
            (false, None) => AnswerState::Empty,
        }
    }

    /// The finish reason of an answer with tool calls differs between servers.
    fn answer(&mut self) -> ModelResponse {
        let asks = !self.calls.is_empty();
        let finish = match self.finish.take() {
            Some(FinishReason::Stop) | None if asks => FinishReason::ToolCalls,
            Some(FinishReason::Stop) | None if self.refused => FinishReason::Refused,
            Some(FinishReason::ToolCalls) if !asks => FinishReason::Stop,
            Some(finish) => finish,
            None => FinishReason::Stop,
        };
        let sealed = |content| Sealed { place: SealPosition::Output(0), content };
        ModelResponse {
            sealed: self.details.finish().map(sealed).into_iter().collect(),
            ..ModelResponse::new(finish, self.calls.finish(), self.usage)
        }
    }
}

impl Parser {
    fn take_event(
        &mut self,
        event: wire::Event<'_>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), AttemptError> {
        if let Some(error) = event.error {
            return Err(provider_error::from_stream(error.get()));
        }
        if let Some(usage) = &event.usage {
            self.usage = counted(usage);
        }
        for choice in event.choices.into_iter().flatten().filter(wire::Choice::is_first) {
            if let Some(word) = choice.finish() {
                self.finish = Some(finish(word));
            }
            if let Some(delta) = choice.delta {
                self.take_delta(delta, out)?;
            }
        }
        Ok(())
    }

    fn take_delta(
        &mut self,
        delta: wire::Delta<'_>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), AttemptError> {
        self.writer.write(Channel::Thought, delta.thought(), out);
        self.writer.write(Channel::Text, delta.content(), out);
        self.writer.write(Channel::Text, delta.refusal(), out);
        self.refused |= !delta.refusal().is_empty();
        for call in delta.tool_calls.iter().flatten() {
            calls::add(&mut self.calls, call).map_err(malformed)?;
        }
        if let Some(details) = delta.reasoning_details {
            self.details.add(details);
        }
        Ok(())
    }
}

/// The text of an event that contains only output.
fn only_output<'a>(event: &'a wire::Event<'_>) -> Option<(Channel, &'a str)> {
    let [choice] = event.choices.as_deref()? else { return None };
    let delta = choice.delta.as_ref()?;
    let more = event.error.is_some()
        || event.usage.is_some()
        || !choice.is_first()
        || choice.finish().is_some()
        || delta.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
        || delta.reasoning_details.is_some()
        || !delta.refusal().is_empty();
    match (delta.thought(), delta.content()) {
        _ if more => None,
        ("", text) => Some((Channel::Text, text)),
        (text, "") => Some((Channel::Thought, text)),
        (_, _) => None,
    }
}

fn finish(word: &str) -> FinishReason {
    match word {
        "stop" | "end_turn" | "eos" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" => FinishReason::Length,
        "content_filter" => FinishReason::Refused,
        other => FinishReason::Other(other.to_owned()),
    }
}

fn counted(usage: &wire::Usage) -> Usage {
    let read = usage.prompt_tokens_details.as_ref();
    let cached = read.and_then(|details| details.cached_tokens);
    let reasoning = usage.completion_tokens_details.as_ref().and_then(|d| d.reasoning_tokens);
    Usage {
        input: usage.prompt_tokens.unwrap_or_default(),
        output: usage.completion_tokens.unwrap_or_default(),
        cached: cached.or(usage.prompt_cache_hit_tokens).unwrap_or_default(),
        reasoning: reasoning.unwrap_or_default(),
        cache_written: read.and_then(|details| details.cache_write_tokens).unwrap_or_default(),
        estimated: false,
    }
}

#[cfg(test)]
mod tests;
