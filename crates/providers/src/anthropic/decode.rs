//! Parses an answer event by event.

use quintet_kernel::model::{
    Channel, Chunk, FinishReason, ModelResponse, SealPosition, Sealed, Usage,
};
use quintet_kernel::web_search::WEB_SEARCH;
use serde_json::{Value, json};

use super::search::Searching;
use super::wire;
use crate::answer_parser::{AnswerParser, AnswerState, OutputWriter, malformed};
use crate::calls::Calls;
use crate::provider_error;
use crate::retry::AttemptError;
use crate::sources::{self, Sources};
use crate::template::Template;

/// Parses the events of one answer into an [`ModelResponse`].
#[derive(Debug, Default)]
pub(super) struct Parser {
    template: Template,
    writer: OutputWriter,
    calls: Calls,
    sealed: Vec<Sealed>,
    /// The signature of the thought that is being read.
    signature: String,
    searching: Searching,
    sources: Sources,
    usage: wire::Usage,
    finish: Option<FinishReason>,
    done: bool,
}

impl AnswerParser for Parser {
    fn take(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        if let Some((channel, text)) = self.template.read(data) {
            self.writer.write(channel, text, out);
            return Ok(());
        }
        let event: wire::Event<'_> = serde_json::from_slice(data).map_err(malformed)?;
        if let Some((channel, text)) = only_output(&event) {
            self.template.remember(data, channel, text);
        }
        self.take_event(&event, out)
    }

    fn take_whole(&mut self, _body: &[u8], _out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        Err(malformed("it is not a stream"))
    }

    fn state(&self) -> AnswerState {
        let begun = self.writer.written > 0 || !self.calls.is_empty() || !self.sealed.is_empty();
        match (self.done, &self.finish) {
            (true, _) => AnswerState::Done,
            (false, Some(_)) => AnswerState::Complete,
            (false, None) if begun => AnswerState::Begun,
            (false, None) => AnswerState::Empty,
        }
    }

    fn answer(&mut self) -> ModelResponse {
        let finish = self.finish.take().unwrap_or(FinishReason::Stop);
        let mut sealed = std::mem::take(&mut self.sealed);
        sealed.extend(self.searching.unanswered_separators());
        ModelResponse {
            sealed,
            ..ModelResponse::new(finish, self.calls.finish(), counted(self.usage))
        }
    }
}

impl Parser {
    fn take_event(
        &mut self,
        event: &wire::Event<'_>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), AttemptError> {
        match &*event.kind.0 {
            "error" => {
                return Err(provider_error::from_stream(
                    event.error.map_or("{}", |error| error.get()),
                ));
            }
            "message_stop" => self.done = true,
            "message_start" => {
                self.count(event.message.as_ref().and_then(|message| message.usage));
            }
            "content_block_start" => return self.begin(event, out),
            "content_block_delta" => return self.continue_block(event, out),
            "content_block_stop" => {
                self.seal_thought();
                if let Some(query) = self.searching.query(event.index) {
                    sources::write_search(&query, &mut self.writer, out);
                    self.searching.mark_shown(event.index, self.writer.written);
                }
            }
            "message_delta" => {
                self.count(event.usage);
                let word = event.delta.as_ref().and_then(|delta| delta.stop_reason.as_ref());
                self.finish = word.map(|word| finish(&word.0)).or(self.finish.take());
                self.sources.write_list(&mut self.writer, out);
            }
            // `ping`, and unknown events.
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, event: &wire::Event<'_>, out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        let Some(block) = &event.content_block else { return Ok(()) };
        self.writer.write(Channel::Text, &block.text.0, out);
        self.writer.write(Channel::Thought, &block.thinking.0, out);
        self.signature.push_str(&block.signature.0);
        match &*block.kind.0 {
            "tool_use" => {
                let begun = self.calls.begin(Some(event.index), &block.id.0, &block.name.0);
                begun.map_err(malformed)?;
            }
            "redacted_thinking" => self.seal(json!({ "data": block.data.0 })),
            "server_tool_use" if block.name.0 == WEB_SEARCH => {
                self.searching.begin(event.index, &block.id.0);
            }
            "web_search_tool_result" => {
                let blocks = self.searching.finish(&block.tool_use_id.0, block.content);
                blocks.into_iter().flatten().for_each(|block| self.seal(json!({ "block": block })));
            }
            _ => {}
        }
        Ok(())
    }

    fn continue_block(
        &mut self,
        event: &wire::Event<'_>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), AttemptError> {
        let Some(delta) = &event.delta else { return Ok(()) };
        self.writer.write(Channel::Text, &delta.text.0, out);
        self.writer.write(Channel::Thought, &delta.thinking.0, out);
        self.signature.push_str(&delta.signature.0);
        if let Some(wire::Citation { url: Some(url), title }) = &delta.citation {
            self.sources.cite(url, title.as_deref().unwrap_or_default());
        }
        match self.calls.find(event.index) {
            Some(at) => self.calls.append(at, &delta.partial_json.0).map_err(malformed),
            None => {
                self.searching.append(event.index, &delta.partial_json.0);
                Ok(())
            }
        }
    }

    fn seal_thought(&mut self) {
        let signature = std::mem::take(&mut self.signature);
        if !signature.is_empty() {
            self.seal(json!({ "signature": signature }));
        }
    }

    /// Thoughts may also occur between calls.
    fn seal(&mut self, content: Value) {
        let place = match self.calls.len() {
            0 => SealPosition::Output(self.writer.written),
            calls => SealPosition::Call(calls),
        };
        self.sealed.push(Sealed { place, content });
    }

    fn count(&mut self, usage: Option<wire::Usage>) {
        let (old, new) = (self.usage, usage.unwrap_or_default());
        self.usage = wire::Usage {
            input_tokens: new.input_tokens.or(old.input_tokens),
            output_tokens: new.output_tokens.or(old.output_tokens),
            cache_creation_input_tokens: new
                .cache_creation_input_tokens
                .or(old.cache_creation_input_tokens),
            cache_read_input_tokens: new.cache_read_input_tokens.or(old.cache_read_input_tokens),
        };
    }
}

/// The text of an event that contains only output.
fn only_output<'a>(event: &'a wire::Event<'_>) -> Option<(Channel, &'a str)> {
    let delta = event.delta.as_ref().filter(|_| event.kind.0 == "content_block_delta")?;
    match &*delta.kind.0 {
        "text_delta" => Some((Channel::Text, &delta.text.0)),
        "thinking_delta" => Some((Channel::Thought, &delta.thinking.0)),
        _ => None,
    }
}

fn finish(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::Refused,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// The API counts tokens read from the cache, tokens written to it and the others separately.
fn counted(usage: wire::Usage) -> Usage {
    let cached = usage.cache_read_input_tokens.unwrap_or_default();
    let cache_written = usage.cache_creation_input_tokens.unwrap_or_default();
    let rest = usage.input_tokens.unwrap_or_default();
    Usage {
        input: rest.saturating_add(cached).saturating_add(cache_written),
        output: usage.output_tokens.unwrap_or_default(),
        cached,
        cache_written,
        ..Usage::default()
    }
}
