//! Reads an answer from bytes. Pure and incremental; this is the hot path of a turn.
//!
//! Neighbouring deltas of one read that go to the same channel become one [`Chunk::Output`].

use quintet_kernel::model::{Answer, Channel, Chunk, FailureKind, Finish, Usage};

use super::calls::Calls;
use super::template::Template;
use super::wire;
use crate::fault;
use crate::retry::Trouble;
use crate::sse::{Framer, TooLong};

/// The longest plain answer that is taken.
const LONGEST_WHOLE: usize = 32 << 20;

/// An answer as far as it was read.
#[derive(Debug)]
pub(super) struct Decoder {
    form: Form,
    draft: Draft,
}

/// How the answer comes.
#[derive(Debug)]
enum Form {
    /// As server-sent events.
    Stream(Framer),
    /// As one JSON body, collected here.
    Whole(Vec<u8>),
}

impl Decoder {
    /// For an answer of server-sent events.
    pub(super) fn stream() -> Self {
        Self { form: Form::Stream(Framer::default()), draft: Draft::default() }
    }

    /// For an answer of one JSON body.
    pub(super) fn whole() -> Self {
        Self { form: Form::Whole(Vec::new()), draft: Draft::default() }
    }

    /// Takes a read. What was understood before an error is in `out` all the same.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        match &mut self.form {
            Form::Stream(framer) => framer.feed(bytes, |data| self.draft.take(data, out)),
            Form::Whole(body) if body.len() + bytes.len() > LONGEST_WHOLE => Err(TooLong.into()),
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Whether the provider said that this is all.
    pub(super) fn is_done(&self) -> bool {
        self.draft.done
    }

    /// Whether nothing of an answer was seen yet, so that it can be asked for again.
    pub(super) fn is_blank(&self) -> bool {
        !self.draft.began
    }

    /// The stream is over, properly or not; appends [`Chunk::Finished`] if the answer is whole.
    pub(super) fn end(&mut self, out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        let rest = match &mut self.form {
            Form::Stream(framer) => framer.end(|data| self.draft.take(data, out)),
            Form::Whole(body) => {
                let taken = self.draft.take(body, out);
                // A body that can be parsed is whole, whether it says so or not.
                self.draft.done |= taken.is_ok() && self.draft.began;
                taken
            }
        };
        if self.draft.done || self.draft.finish.is_some() {
            out.push(Chunk::Finished(self.draft.answer()));
            return Ok(());
        }
        // Half an event at the end of a stream is not malformed but cut.
        match (rest, &self.form) {
            (Err(trouble), Form::Whole(_)) => Err(trouble),
            (Err(trouble), Form::Stream(_)) if trouble.failure.kind != FailureKind::Malformed => {
                Err(trouble)
            }
            (Ok(()), _) | (Err(_), Form::Stream(_)) => {
                Err(fault::passing(FailureKind::Cut, "the answer broke off in the middle"))
            }
        }
    }
}

/// What will be the [`Answer`].
#[derive(Debug, Default)]
struct Draft {
    template: Template,
    calls: Calls,
    usage: Usage,
    finish: Option<Finish>,
    refused: bool,
    began: bool,
    done: bool,
}

impl Draft {
    fn take(&mut self, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        if self.done {
            return Ok(());
        }
        if let Some((channel, text)) = self.template.read(data) {
            self.say(channel, text, out);
            return Ok(());
        }
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        let event: wire::Event<'_> = serde_json::from_slice(data).map_err(malformed)?;
        if let Some((channel, text)) = only_output(&event) {
            self.template.learn(data, channel, text);
        }
        self.take_event(&event, out)
    }

    fn take_event(&mut self, event: &wire::Event<'_>, out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        if let Some(error) = event.error {
            return Err(fault::from_stream(error.get()));
        }
        if let Some(usage) = &event.usage {
            self.usage = counted(usage);
        }
        for choice in event.choices.iter().flatten().filter(|choice| choice.is_first()) {
            if let Some(delta) = &choice.delta {
                self.take_delta(delta, out)?;
            }
            if let Some(word) = choice.finish() {
                self.finish = Some(finish(word));
            }
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: &wire::Delta<'_>, out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        self.say(Channel::Thought, delta.thought(), out);
        self.say(Channel::Text, delta.content(), out);
        self.say(Channel::Text, delta.refusal(), out);
        self.refused |= !delta.refusal().is_empty();
        for call in delta.tool_calls.iter().flatten() {
            self.began = true;
            self.calls.add(call).map_err(malformed)?;
        }
        Ok(())
    }

    fn say(&mut self, to: Channel, text: &str, out: &mut Vec<Chunk>) {
        if text.is_empty() {
            return;
        }
        self.began = true;
        match out.last_mut() {
            Some(Chunk::Output(channel, before)) if *channel == to => before.push_str(text),
            _ => out.push(Chunk::Output(to, text.to_owned())),
        }
    }

    /// The end of it. Servers do not agree what to call an answer that asks for tools.
    fn answer(&mut self) -> Answer {
        let asks = !self.calls.is_empty();
        let finish = match self.finish.take() {
            Some(Finish::Stop) | None if asks => Finish::ToolCalls,
            Some(Finish::Stop) | None if self.refused => Finish::Refused,
            Some(Finish::ToolCalls) if !asks => Finish::Stop,
            Some(finish) => finish,
            None => Finish::Stop,
        };
        Answer::new(finish, self.calls.finish(), self.usage)
    }
}

/// The text of an event that has nothing but a piece of output.
fn only_output<'a>(event: &'a wire::Event<'_>) -> Option<(Channel, &'a str)> {
    let [choice] = event.choices.as_deref()? else { return None };
    let delta = choice.delta.as_ref()?;
    let more = event.error.is_some()
        || event.usage.is_some()
        || !choice.is_first()
        || choice.finish().is_some()
        || delta.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
        || !delta.refusal().is_empty();
    match (delta.thought(), delta.content()) {
        _ if more => None,
        ("", text) => Some((Channel::Text, text)),
        (text, "") => Some((Channel::Thought, text)),
        (_, _) => None,
    }
}

fn finish(word: &str) -> Finish {
    match word {
        "stop" | "end_turn" | "eos" => Finish::Stop,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" => Finish::Length,
        "content_filter" => Finish::Refused,
        other => Finish::Other(other.to_owned()),
    }
}

fn counted(usage: &wire::Usage) -> Usage {
    let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let reasoning = usage.completion_tokens_details.as_ref().and_then(|d| d.reasoning_tokens);
    Usage {
        input: usage.prompt_tokens.unwrap_or_default(),
        output: usage.completion_tokens.unwrap_or_default(),
        cached: cached.or(usage.prompt_cache_hit_tokens).unwrap_or_default(),
        reasoning: reasoning.unwrap_or_default(),
        ..Usage::default()
    }
}

fn malformed(error: impl std::fmt::Display) -> Trouble {
    let message = format!("the provider's answer makes no sense: {error}");
    fault::lasting(FailureKind::Malformed, message)
}

impl From<TooLong> for Trouble {
    fn from(TooLong: TooLong) -> Self {
        malformed("it is too long")
    }
}

#[cfg(test)]
mod tests;
