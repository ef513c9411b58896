//! Parses an answer event by event.

use quintet_kernel::model::{
    Channel, Chunk, FinishReason, ModelResponse, SealPosition, Sealed, Usage,
};
use serde_json::{Value, json};

use super::wire::{self, text};
use crate::answer_parser::{AnswerParser, AnswerState, OutputWriter, malformed};
use crate::calls::Calls;
use crate::provider_error;
use crate::retry::AttemptError;
use crate::sources::{self, Sources};

/// Parses the events of one answer into an [`ModelResponse`].
#[derive(Debug, Default)]
pub(super) struct Parser {
    writer: OutputWriter,
    calls: Calls,
    sealed: Vec<Sealed>,
    usage: Usage,
    finish: Option<FinishReason>,
    refused: bool,
    /// The output position at which the last summary of a thought ended; the next begins a new paragraph.
    summarized: Option<u64>,
    sources: Sources,
}

impl AnswerParser for Parser {
    fn take(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        let event: wire::Event<'_> = serde_json::from_slice(data).map_err(malformed)?;
        match &*event.kind.0 {
            "response.output_text.delta" => {
                self.writer.write(Channel::Text, text(&event.delta), out);
                Ok(())
            }
            "error" => Err(provider_error::from_stream(&String::from_utf8_lossy(data))),
            _ => self.take_event(&event, out),
        }
    }

    fn take_whole(&mut self, _body: &[u8], _out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        Err(malformed("it is not a stream"))
    }

    fn state(&self) -> AnswerState {
        let begun = self.writer.written > 0 || !self.calls.is_empty() || !self.sealed.is_empty();
        match &self.finish {
            Some(_) => AnswerState::Done,
            None if begun => AnswerState::Begun,
            None => AnswerState::Empty,
        }
    }

    fn answer(&mut self) -> ModelResponse {
        let asks = !self.calls.is_empty();
        let finish = match self.finish.take().unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if asks => FinishReason::ToolCalls,
            FinishReason::Stop if self.refused => FinishReason::Refused,
            finish => finish,
        };
        let sealed = std::mem::take(&mut self.sealed);
        ModelResponse { sealed, ..ModelResponse::new(finish, self.calls.finish(), self.usage) }
    }
}

impl Parser {
    fn take_event(
        &mut self,
        event: &wire::Event<'_>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), AttemptError> {
        match &*event.kind.0 {
            "response.refusal.delta" => {
                self.refused = true;
                self.writer.write(Channel::Text, text(&event.delta), out);
            }
            "response.reasoning_summary_part.added" => self.set_apart(out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.writer.write(Channel::Thought, text(&event.delta), out);
                self.summarized = Some(self.writer.written);
            }
            "response.output_item.added" => return self.begin(event),
            "response.function_call_arguments.delta" => {
                let at = self.calls.find(event.output_index);
                let at = at.ok_or_else(|| malformed("arguments of no call"))?;
                return self.calls.append(at, text(&event.delta)).map_err(malformed);
            }
            "response.function_call_arguments.done" => {
                return self.complete(event.output_index, text(&event.arguments));
            }
            "response.output_item.done" => return self.end_item(event, out),
            "response.output_text.annotation.added" => {
                if let Some(wire::Annotation { url: Some(url), title }) = &event.annotation {
                    self.sources.cite(url, title.as_deref().unwrap_or_default());
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.sources.write_list(&mut self.writer, out);
                return self.end(event);
            }
            // Events for display only, and unknown events.
            _ => {}
        }
        Ok(())
    }

    /// Summaries of one thought follow each other without a space between them.
    fn set_apart(&mut self, out: &mut Vec<Chunk>) {
        if self.summarized == Some(self.writer.written) {
            self.writer.write(Channel::Thought, "\n\n", out);
        }
    }

    fn begin(&mut self, event: &wire::Event<'_>) -> Result<(), AttemptError> {
        let Some(item) = event.item.as_ref().filter(|item| item.kind.0 == "function_call") else {
            return Ok(());
        };
        let begun =
            self.calls.begin(Some(event.output_index), text(&item.call_id), text(&item.name));
        begun.map(|_| ()).map_err(malformed)
    }

    fn complete(&mut self, index: u64, arguments: &str) -> Result<(), AttemptError> {
        match self.calls.find(index) {
            Some(at) => self.calls.complete(at, arguments).map_err(malformed),
            None => Ok(()),
        }
    }

    fn end_item(
        &mut self,
        event: &wire::Event<'_>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), AttemptError> {
        let Some(item) = &event.item else { return Ok(()) };
        match &*item.kind.0 {
            "function_call" => self.complete(event.output_index, text(&item.arguments)),
            "reasoning" => {
                self.seal_thought(item);
                Ok(())
            }
            "web_search_call" => {
                self.searched(item, out);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Stores a thought that can be sent back. It precedes the item that follows it.
    fn seal_thought(&mut self, item: &wire::Item<'_>) {
        let encrypted = text(&item.encrypted_content);
        if encrypted.is_empty() {
            return;
        }
        let summary = item.summary.as_deref().unwrap_or_default();
        let content = json!({
            "id": text(&item.id),
            "summary": summary,
            "encrypted_content": encrypted,
        });
        self.seal(content);
    }

    /// Shows a search and stores it: the API does not accept the thought before it without it.
    fn searched(&mut self, item: &wire::Item<'_>, out: &mut Vec<Chunk>) {
        let action = item.action.map_or("{}", |action| action.get());
        let action: Value = serde_json::from_str(action).unwrap_or_default();
        let fields = ["query", "url", "pattern"].into_iter();
        if let Some(what) =
            fields.filter_map(|field| action[field].as_str()).find(|it| !it.is_empty())
        {
            sources::write_search(what, &mut self.writer, out);
        }
        self.seal(json!({ "item": {
            "type": "web_search_call",
            "id": text(&item.id),
            "status": text(&item.status),
            "action": action,
        }}));
    }

    fn seal(&mut self, content: Value) {
        let place = match self.calls.len() {
            0 => SealPosition::Output(self.writer.written),
            calls => SealPosition::Call(calls),
        };
        self.sealed.push(Sealed { place, content });
    }

    fn end(&mut self, event: &wire::Event<'_>) -> Result<(), AttemptError> {
        let none = wire::Response::default();
        let response = event.response.as_ref().unwrap_or(&none);
        if let Some(usage) = &response.usage {
            self.usage = counted(usage);
        }
        let reason = response.incomplete_details.as_ref().map_or("", |why| &why.reason);
        match (&*event.kind.0, reason) {
            ("response.failed", _) => {
                let error = response.error.map_or("{}", |error| error.get());
                return Err(provider_error::from_stream(error));
            }
            ("response.incomplete", "max_output_tokens") => {
                self.finish = Some(FinishReason::Length)
            }
            ("response.incomplete", "content_filter") => self.finish = Some(FinishReason::Refused),
            ("response.incomplete", other) => self.finish = Some(FinishReason::Other(other.into())),
            _ => self.finish = Some(FinishReason::Stop),
        }
        Ok(())
    }
}

fn counted(usage: &wire::Usage) -> Usage {
    Usage {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cached: usage.input_tokens_details.as_ref().map_or(0, |details| details.cached_tokens),
        reasoning: usage
            .output_tokens_details
            .as_ref()
            .map_or(0, |details| details.reasoning_tokens),
        ..Usage::default()
    }
}
