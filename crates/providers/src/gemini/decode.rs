//! Parses an answer event by event.

use quintet_kernel::model::{
    Channel, Chunk, FailureKind, FinishReason, ModelResponse, SealPosition, Sealed, Usage,
};
use serde_json::json;

use super::wire;
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
    usage: wire::Usage,
    finish: Option<FinishReason>,
    /// The search queries so far; events repeat them.
    searched: Vec<String>,
    sources: Sources,
}

impl AnswerParser for Parser {
    fn take(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        let event: wire::Event<'_> = serde_json::from_slice(data).map_err(malformed)?;
        if let Some(error) = event.error {
            return Err(provider_error::from_stream(error.get()));
        }
        if let Some(reason) = event.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            let message = format!("the provider refused to answer: {reason}");
            return Err(provider_error::permanent(FailureKind::Refused, message));
        }
        self.usage = event.usage_metadata.unwrap_or(self.usage);
        for candidate in event.candidates.iter().filter(|candidate| candidate.index == 0) {
            for part in &candidate.content.parts {
                self.take_part(part, out)?;
            }
            if let Some(grounding) = &candidate.grounding_metadata {
                self.show_searches(grounding, out);
            }
            self.end(candidate.finish_reason.as_deref())?;
            if self.finish.is_some() {
                self.sources.write_list(&mut self.writer, out);
            }
        }
        Ok(())
    }

    fn take_whole(&mut self, _body: &[u8], _out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        Err(malformed("it is not a stream"))
    }

    /// Only the end of the stream marks the end of an answer.
    fn state(&self) -> AnswerState {
        match &self.finish {
            Some(_) => AnswerState::Complete,
            None if self.writer.written > 0 || !self.calls.is_empty() => AnswerState::Begun,
            None => AnswerState::Empty,
        }
    }

    fn answer(&mut self) -> ModelResponse {
        let finish = match self.finish.take().unwrap_or(FinishReason::Stop) {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            finish => finish,
        };
        let sealed = std::mem::take(&mut self.sealed);
        ModelResponse {
            sealed,
            ..ModelResponse::new(finish, self.calls.finish(), counted(self.usage))
        }
    }
}

impl Parser {
    fn take_part(
        &mut self,
        part: &wire::Part<'_>,
        out: &mut Vec<Chunk>,
    ) -> Result<(), AttemptError> {
        let channel = if part.thought { Channel::Thought } else { Channel::Text };
        self.writer.write(channel, &part.text.0, out);
        let signature = &*part.thought_signature.0;
        if let Some(call) = &part.function_call {
            self.seal(signature, SealPosition::Call(self.calls.len()), "call");
            // Calls arrive complete.
            let at = self.calls.begin(None, &call.id.0, &call.name.0).map_err(malformed)?;
            let arguments = call.args.map_or("{}", |args| args.get());
            return self.calls.append(at, arguments).map_err(malformed);
        }
        self.seal(signature, SealPosition::Output(self.writer.written), "text");
        Ok(())
    }

    fn show_searches(&mut self, grounding: &wire::Grounding, out: &mut Vec<Chunk>) {
        for query in &grounding.web_search_queries {
            if !self.searched.contains(query) {
                sources::write_search(query, &mut self.writer, out);
                self.searched.push(query.clone());
            }
        }
        let pages = grounding.grounding_chunks.iter().filter_map(|source| source.web.as_ref());
        pages.for_each(|page| self.sources.cite(&page.uri, &page.title));
    }

    fn seal(&mut self, signature: &str, place: SealPosition, of: &str) {
        if !signature.is_empty() {
            let content = json!({ "signature": signature, "of": of });
            self.sealed.push(Sealed { place, content });
        }
    }

    fn end(&mut self, reason: Option<&str>) -> Result<(), AttemptError> {
        let Some(reason) = reason else { return Ok(()) };
        self.finish = Some(match reason {
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" => FinishReason::Refused,
            // The model wrote a call that the provider could not parse; a retry may succeed.
            "MALFORMED_FUNCTION_CALL" if self.state() == AnswerState::Empty => {
                let message = "the model wrote a call that cannot be read";
                return Err(provider_error::transient(FailureKind::Malformed, message));
            }
            other => FinishReason::Other(other.to_lowercase()),
        });
        Ok(())
    }
}

fn counted(usage: wire::Usage) -> Usage {
    let read = usage.prompt_token_count.saturating_add(usage.tool_use_prompt_token_count);
    Usage {
        input: read,
        output: usage.candidates_token_count.saturating_add(usage.thoughts_token_count),
        cached: usage.cached_content_token_count,
        reasoning: usage.thoughts_token_count,
        ..Usage::default()
    }
}
