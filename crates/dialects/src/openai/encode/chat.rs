//! Encodes answers as chat completions: in chunks, or as a whole.

use quintet_kernel::model::Channel;
use serde_json::{Map, Value, json};

use super::{End, EndReason, Progress, ToolCall, cancelled, frame};
use crate::openai::reply::Reply;
use crate::openai::wire::{chat_usage, finish_reason};

/// Separates the text of two steps.
const STEP_SEPARATOR: &str = "\n\n";

/// The fields that all chunks of an answer share.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) created: i64,
    /// The model's name as the client wrote it.
    pub(crate) model: String,
}

/// Tracks the ends of steps, so that the next step starts a paragraph.
#[derive(Debug, Default)]
struct StepSeparator {
    has_text: bool,
    is_between: bool,
}

impl StepSeparator {
    fn end_step(&mut self) {
        self.is_between = self.has_text;
    }

    fn text(&mut self, text: &str) -> String {
        self.has_text = true;
        if std::mem::take(&mut self.is_between) {
            format!("{STEP_SEPARATOR}{text}")
        } else {
            text.into()
        }
    }
}

/// An answer in chunks.
#[derive(Debug)]
pub(crate) struct ChatStream {
    head: Head,
    include_usage: bool,
    steps: StepSeparator,
    calls: usize,
    is_over: bool,
}

impl ChatStream {
    /// A stream, and its first chunk.
    pub(crate) fn begin(head: Head, include_usage: bool, out: &mut Vec<u8>) -> Self {
        let steps = StepSeparator::default();
        let stream = Self { head, include_usage, steps, calls: 0, is_over: false };
        stream.delta(json!({ "role": "assistant", "content": "" }), None, out);
        stream
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) fn take(&mut self, progress: &Progress, out: &mut Vec<u8>) {
        match progress {
            Progress::Output(Channel::Text, text) => {
                let text = self.steps.text(text);
                self.delta(json!({ "content": text }), None, out);
            }
            Progress::Output(Channel::Thought, text) => {
                self.delta(json!({ "reasoning_content": &**text }), None, out);
            }
            Progress::StepEnded { .. } => self.steps.end_step(),
            Progress::Call(call) => self.call(call, out),
            Progress::End(end) => self.end(end, out),
        }
    }

    /// The first fragment has the name of a call, the second its arguments, because clients join repeated
    /// fields.
    fn call(&mut self, call: &ToolCall, out: &mut Vec<u8>) {
        let index = self.calls;
        self.calls += 1;
        let function = json!({ "name": call.tool, "arguments": "" });
        let first =
            json!({ "index": index, "id": call.id, "type": "function", "function": function });
        self.delta(json!({ "tool_calls": [first] }), None, out);
        let rest = json!({ "index": index, "function": { "arguments": call.arguments } });
        self.delta(json!({ "tool_calls": [rest] }), None, out);
    }

    fn end(&mut self, end: &End, out: &mut Vec<u8>) {
        self.is_over = true;
        let reply = match &end.reason {
            EndReason::Finished(finish) => {
                self.delta(json!({}), Some(finish_reason(finish)), out);
                if self.include_usage {
                    let mut chunk = self.chunk(json!([]));
                    chunk["usage"] = chat_usage(end.usage);
                    frame(None, &chunk, out);
                }
                out.extend_from_slice(b"data: [DONE]\n\n");
                return;
            }
            EndReason::Failed(reply) => reply.clone(),
            EndReason::Cancelled(reason) => cancelled(reason.as_deref()),
        };
        self.broken(&reply, out);
    }

    /// Ends the stream with an error. There is no `[DONE]`, so that it is not mistaken for an answer.
    pub(crate) fn broken(&mut self, reply: &Reply, out: &mut Vec<u8>) {
        self.is_over = true;
        frame(None, &reply.body(), out);
    }

    fn delta(&self, delta: Value, finish: Option<&str>, out: &mut Vec<u8>) {
        let choice =
            json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        frame(None, &self.chunk(json!([choice])), out);
    }

    fn chunk(&self, choices: Value) -> Value {
        let mut chunk = json!({
            "id": self.head.id,
            "object": "chat.completion.chunk",
            "created": self.head.created,
            "model": self.head.model,
            "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

/// An answer that is sent when it is complete.
#[derive(Debug)]
pub(crate) struct ChatCompletion {
    head: Head,
    steps: StepSeparator,
    text: String,
    thought: String,
    calls: Vec<Value>,
    end: Option<End>,
}

impl ChatCompletion {
    pub(crate) fn new(head: Head) -> Self {
        let (text, thought) = (String::new(), String::new());
        Self { head, steps: StepSeparator::default(), text, thought, calls: Vec::new(), end: None }
    }

    pub(crate) fn take(&mut self, progress: &Progress) {
        match progress {
            Progress::Output(Channel::Text, text) => {
                let text = self.steps.text(text);
                self.text.push_str(&text);
            }
            Progress::Output(Channel::Thought, text) => self.thought.push_str(text),
            Progress::StepEnded { .. } => self.steps.end_step(),
            Progress::Call(ToolCall { id, tool, arguments }) => {
                let function = json!({ "name": tool, "arguments": arguments });
                self.calls.push(json!({ "id": id, "type": "function", "function": function }));
            }
            Progress::End(end) => self.end = Some(end.clone()),
        }
    }

    /// The answer, once it is complete.
    pub(crate) fn finish(&self) -> Option<Result<Value, Reply>> {
        let end = self.end.as_ref()?;
        Some(match &end.reason {
            EndReason::Failed(reply) => Err(reply.clone()),
            EndReason::Cancelled(reason) => Err(cancelled(reason.as_deref())),
            EndReason::Finished(finish) => Ok(json!({
                "id": self.head.id,
                "object": "chat.completion",
                "created": self.head.created,
                "model": self.head.model,
                "choices": [{
                    "index": 0,
                    "message": self.message(),
                    "logprobs": null,
                    "finish_reason": finish_reason(finish),
                }],
                "usage": chat_usage(end.usage),
            })),
        })
    }

    fn message(&self) -> Value {
        let only_calls = self.text.is_empty() && !self.calls.is_empty();
        let content = if only_calls { Value::Null } else { self.text.as_str().into() };
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), content);
        message.insert("refusal".into(), Value::Null);
        if !self.thought.is_empty() {
            message.insert("reasoning_content".into(), self.thought.as_str().into());
        }
        if !self.calls.is_empty() {
            message.insert("tool_calls".into(), self.calls.clone().into());
        }
        message.into()
    }
}
