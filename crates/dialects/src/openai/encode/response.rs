//! Encodes answers as responses: numbered events, and the response object.
//!
//! The numbers depend only on the progress, and the progress only on the journal, so every connection and
//! every daemon gives the same events the same numbers.

use quintet_kernel::model::{Channel, FinishReason};
use serde_json::{Map, Value, json};

use super::{End, EndReason, Progress, ToolCall, cancelled, frame};
use crate::openai::wire::{response_usage, seconds};

/// An event of a response.
#[derive(Debug)]
pub(crate) struct ResponseEvent {
    /// The number, from 0.
    pub(crate) sequence: u64,
    kind: &'static str,
    data: Value,
}

impl ResponseEvent {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        frame(Some(self.kind), &self.data, out);
    }
}

/// A response in progress.
#[derive(Debug)]
pub(crate) struct Response {
    id: String,
    created: i64,
    /// The fields that repeat the request.
    echo: Map<String, Value>,
    sequence: u64,
    output: Vec<Value>,
    open: Option<OpenItem>,
    end: Option<End>,
}

/// The item whose text is being written.
#[derive(Debug)]
struct OpenItem {
    id: String,
    index: usize,
    channel: Channel,
    text: String,
}

impl Response {
    pub(crate) fn new(id: String, created: i64, echo: Map<String, Value>) -> Self {
        Self { id, created, echo, sequence: 0, output: Vec::new(), open: None, end: None }
    }

    /// The first events.
    pub(crate) fn begin(&mut self) -> Vec<ResponseEvent> {
        ["response.created", "response.in_progress"]
            .map(|kind| {
                let response = self.object();
                self.event(kind, json!({ "response": response }))
            })
            .into()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// The end of the response, after it ended.
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    pub(crate) fn take(&mut self, progress: &Progress) -> Vec<ResponseEvent> {
        let mut events = Vec::new();
        match progress {
            Progress::Output(channel, text) => self.write(*channel, text, &mut events),
            Progress::StepEnded { complete } => self.close(*complete, &mut events),
            Progress::Call(call) => {
                self.close(true, &mut events);
                self.call(call, &mut events);
            }
            Progress::End(end) => {
                self.close(matches!(end.reason, EndReason::Finished(_)), &mut events);
                self.end = Some(end.clone());
                let kind = match self.status() {
                    "completed" => "response.completed",
                    "failed" => "response.failed",
                    _ => "response.incomplete",
                };
                let response = self.object();
                events.push(self.event(kind, json!({ "response": response })));
            }
        }
        events
    }

    /// The current response object.
    pub(crate) fn object(&self) -> Value {
        let mut object = self.echo.clone();
        let reason = self.end.as_ref().map(|end| &end.reason);
        let error = match reason {
            Some(EndReason::Failed(reply)) => {
                json!({ "code": reply.code.unwrap_or("server_error"), "message": reply.message })
            }
            Some(EndReason::Finished(_) | EndReason::Cancelled(_)) | None => Value::Null,
        };
        let incomplete = match reason {
            Some(EndReason::Finished(FinishReason::Length)) => {
                json!({ "reason": "max_output_tokens" })
            }
            Some(EndReason::Finished(FinishReason::Refused)) => {
                json!({ "reason": "content_filter" })
            }
            Some(EndReason::Finished(_) | EndReason::Failed(_) | EndReason::Cancelled(_))
            | None => Value::Null,
        };
        let is_complete = self.status() == "completed";
        let completed = self.end.as_ref().and_then(|end| end.at).filter(|_| is_complete);
        let mut output = self.output.clone();
        output.extend(self.open.as_ref().map(|open| open.item("in_progress")));
        let fields = [
            ("id", self.id.as_str().into()),
            ("object", "response".into()),
            ("created_at", self.created.into()),
            ("completed_at", completed.map(seconds).into()),
            ("status", self.status().into()),
            ("error", error),
            ("incomplete_details", incomplete),
            ("output", output.into()),
            ("usage", self.end.as_ref().map_or(Value::Null, |end| response_usage(end.usage))),
        ];
        object.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        object.into()
    }

    fn status(&self) -> &'static str {
        match self.end.as_ref().map(|end| &end.reason) {
            None => "in_progress",
            Some(EndReason::Finished(FinishReason::Length | FinishReason::Refused)) => "incomplete",
            Some(EndReason::Finished(
                FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_),
            )) => "completed",
            Some(EndReason::Failed(_)) => "failed",
            Some(EndReason::Cancelled(_)) => "cancelled",
        }
    }

    fn write(&mut self, channel: Channel, text: &str, events: &mut Vec<ResponseEvent>) {
        if self.open.as_ref().is_some_and(|open| open.channel != channel) {
            self.close(true, events);
        }
        if self.open.is_none() {
            self.open(channel, events);
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let mut data = open.position();
        data["delta"] = text.into();
        events.push(match channel {
            Channel::Text => {
                data["logprobs"] = json!([]);
                self.event("response.output_text.delta", data)
            }
            Channel::Thought => self.event("response.reasoning_summary_text.delta", data),
        });
    }

    fn open(&mut self, channel: Channel, events: &mut Vec<ResponseEvent>) {
        let index = self.output.len();
        let prefix = match channel {
            Channel::Text => "msg",
            Channel::Thought => "rs",
        };
        let open =
            OpenItem { id: self.item_id(prefix, index), index, channel, text: String::new() };
        let item = open.empty();
        let mut part = open.position();
        part["part"] = open.part();
        self.open = Some(open);
        events.push(
            self.event(
                "response.output_item.added",
                json!({ "output_index": index, "item": item }),
            ),
        );
        let kind = match channel {
            Channel::Text => "response.content_part.added",
            Channel::Thought => "response.reasoning_summary_part.added",
        };
        events.push(self.event(kind, part));
    }

    /// Closes the open item, if any.
    fn close(&mut self, is_complete: bool, events: &mut Vec<ResponseEvent>) {
        let Some(open) = self.open.take() else { return };
        let mut done = open.position();
        done["text"] = open.text.as_str().into();
        let mut part = open.position();
        part["part"] = open.part();
        let (text_done, part_done) = match open.channel {
            Channel::Text => {
                done["logprobs"] = json!([]);
                ("response.output_text.done", "response.content_part.done")
            }
            Channel::Thought => {
                ("response.reasoning_summary_text.done", "response.reasoning_summary_part.done")
            }
        };
        events.push(self.event(text_done, done));
        events.push(self.event(part_done, part));
        let item = open.item(if is_complete { "completed" } else { "incomplete" });
        self.output.push(item.clone());
        let data = json!({ "output_index": open.index, "item": item });
        events.push(self.event("response.output_item.done", data));
    }

    fn call(&mut self, call: &ToolCall, events: &mut Vec<ResponseEvent>) {
        let index = self.output.len();
        let id = self.item_id("fc", index);
        let item = |arguments: &str, status: &str| {
            json!({
                "id": id,
                "type": "function_call",
                "status": status,
                "call_id": call.id,
                "name": call.tool,
                "arguments": arguments,
            })
        };
        let arguments_event =
            |name: &str| json!({ "item_id": id, "output_index": index, name: call.arguments });
        let done = item(&call.arguments, "completed");
        self.output.push(done.clone());
        let mut all_arguments = arguments_event("arguments");
        all_arguments["name"] = call.tool.as_str().into();
        let added = json!({ "output_index": index, "item": item("", "in_progress") });
        events.push(self.event("response.output_item.added", added));
        events.push(self.event("response.function_call_arguments.delta", arguments_event("delta")));
        events.push(self.event("response.function_call_arguments.done", all_arguments));
        let done = json!({ "output_index": index, "item": done });
        events.push(self.event("response.output_item.done", done));
    }

    fn item_id(&self, prefix: &str, index: usize) -> String {
        let response = self.id.strip_prefix("resp_").unwrap_or(&self.id);
        format!("{prefix}_{response}_{index}")
    }

    fn event(&mut self, kind: &'static str, mut data: Value) -> ResponseEvent {
        let sequence = self.sequence;
        self.sequence += 1;
        data["type"] = kind.into();
        data["sequence_number"] = sequence.into();
        ResponseEvent { sequence, kind, data }
    }
}

impl OpenItem {
    /// The fields with the position in the response.
    fn position(&self) -> Value {
        let index = match self.channel {
            Channel::Text => "content_index",
            Channel::Thought => "summary_index",
        };
        json!({ "item_id": self.id, "output_index": self.index, index: 0 })
    }

    fn part(&self) -> Value {
        match self.channel {
            Channel::Text => {
                json!({ "type": "output_text", "text": self.text, "annotations": [], "logprobs": [] })
            }
            Channel::Thought => json!({ "type": "summary_text", "text": self.text }),
        }
    }

    fn item(&self, status: &str) -> Value {
        self.with(status, vec![self.part()])
    }

    fn empty(&self) -> Value {
        self.with("in_progress", Vec::new())
    }

    fn with(&self, status: &str, parts: Vec<Value>) -> Value {
        match self.channel {
            Channel::Text => json!({
                "id": self.id,
                "type": "message",
                "role": "assistant",
                "status": status,
                "content": parts,
            }),
            Channel::Thought => json!({
                "id": self.id,
                "type": "reasoning",
                "status": status,
                "summary": parts,
            }),
        }
    }
}

/// The error reply if a response ended without an answer.
pub(crate) fn error_reply(end: &End) -> Option<crate::openai::reply::Reply> {
    match &end.reason {
        EndReason::Finished(_) => None,
        EndReason::Failed(reply) => Some(reply.clone().after_start()),
        EndReason::Cancelled(reason) => Some(cancelled(reason.as_deref())),
    }
}
