//! The frames of one turn: numbered, each sent once, and no numbered frame after the end.

use std::collections::HashMap;

use quintet_kernel::{CallId, Time, TurnId};
use serde_json::{Value, json};

use super::Spans;
use super::tool_dispatch::{PendingCall, ToolDispatch, handover, replace_calls, show_only};
use crate::windie::wire::{Context, envelope};

/// The answer of a turn in which the model called tools and wrote nothing.
const EMPTY: &str =
    "I completed the requested action(s), but the model returned an empty final response.";

/// A message to a client, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The client's id of the turn.
    pub(crate) turn: String,
    pub(crate) text: String,
    /// The end of the turn, if the frame reports it.
    pub(crate) ends: Option<Time>,
    /// The calls that the frame hands over, if any.
    pub(crate) handover: Option<Box<Handover>>,
}

impl Frame {
    /// Makes the frame one that only shows its calls.
    pub(crate) fn show(&mut self) {
        if let Some(handover) = self.handover.take() {
            self.text = handover.shown;
        }
    }

    /// Hands over these calls instead; without any, the frame only shows the original ones.
    pub(crate) fn hand_over(&mut self, calls: Vec<PendingCall>) {
        if calls.is_empty() {
            return self.show();
        }
        if let Some(handover) = &mut self.handover {
            replace_calls(&mut handover.message["payload"], &calls);
            self.text = handover.message.to_string();
            handover.calls = calls;
        }
    }

    /// True if the frame hands a call over.
    pub(crate) fn hands(&self, call: &CallId) -> bool {
        let calls = self.handover.iter().flat_map(|handover| &handover.calls);
        calls.into_iter().any(|pending| pending.call == *call)
    }
}

/// Calls that a frame hands over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    /// The calls that the client still has to run.
    pub(crate) calls: Vec<PendingCall>,
    /// The frame as JSON.
    message: Value,
    /// The frame for clients that do not run the calls: with the same number, and only to be shown.
    shown: String,
}

/// The frames of one turn, and the state they are made from.
#[derive(Debug, Default)]
pub(crate) struct TurnFrames {
    /// The turn; none for a summary that a client requested.
    pub(crate) turn: Option<TurnId>,
    /// The user's text.
    pub(crate) original: String,
    /// The client's id of the history that the turn leads to, if it stores that.
    pub(crate) revision: Option<String>,
    /// Number of model calls.
    pub(crate) steps: u64,
    /// Estimated tokens that were added since the last model call.
    pub(crate) added: u64,
    pub(crate) dispatch: ToolDispatch,
    /// The arguments of the calls of this step.
    pub(crate) requested: HashMap<CallId, Value>,
    /// When the running calls started.
    pub(crate) running: HashMap<CallId, Time>,
    pub(crate) spans: Spans,
    /// True if the client stopped the turn: it is sent nothing more of it but the end.
    pub(crate) stopped: bool,
    /// Number of frames so far.
    pub(crate) count: u64,
    /// The model's text in this step.
    pub(crate) step: String,
    /// The user, the conversation, and the client's id of the turn.
    context: Context,
    /// The model's text in all steps.
    streamed: String,
    /// The last complete message.
    complete: String,
}

impl TurnFrames {
    pub(crate) fn new(turn: Option<TurnId>, context: Context) -> Self {
        Self { turn, context, ..Self::default() }
    }

    /// The next frame, with its number.
    pub(crate) fn frame(&mut self, kind: &str, payload: &Value, at: Time) -> Frame {
        let message = self.numbered(kind, payload, at);
        self.ready(&message)
    }

    /// The frame that hands calls over.
    pub(crate) fn hand(&mut self, calls: Vec<PendingCall>, at: Time) -> Frame {
        let (kind, payload) = handover(&calls);
        let message = self.numbered(kind, &payload, at);
        let mut shown = message.clone();
        show_only(&mut shown["payload"]);
        let frame = self.ready(&message);
        let handover = Handover { calls, message, shown: shown.to_string() };
        Frame { handover: Some(Box::new(handover)), ..frame }
    }

    /// A frame without a number.
    pub(crate) fn plain(&self, kind: &str, payload: &Value, at: Time) -> Frame {
        self.ready(&self.message(kind, payload, at))
    }

    /// Changes the client's name of the conversation.
    pub(crate) fn rename(&mut self, conversation: &str) {
        self.context.conversation_ref = Some(conversation.into());
    }

    /// Notes that a model call starts.
    pub(crate) fn start_step(&mut self) {
        self.steps += 1;
        self.step.clear();
    }

    /// Streams a piece of the model's text.
    pub(crate) fn stream(&mut self, text: &str, at: Time) -> Frame {
        self.step.push_str(text);
        self.streamed.push_str(text);
        self.frame("streaming-response", &json!({ "text": text }), at)
    }

    /// The complete text of this step, if there is any.
    pub(crate) fn complete(&mut self, at: Time) -> Option<Frame> {
        if self.step.is_empty() {
            return None;
        }
        self.complete.clone_from(&self.step);
        let payload = json!({ "content": self.step });
        Some(self.frame("assistant-message-full", &payload, at))
    }

    /// The end of a turn that succeeded. A client that was sent no text is sent some.
    pub(crate) fn finish(&mut self, at: Time) -> Vec<Frame> {
        let answer = self.answer().to_owned();
        let mut frames = Vec::new();
        if self.streamed.trim().is_empty() {
            frames.push(self.frame("streaming-response", &json!({ "text": answer }), at));
        }
        frames.push(self.end(&json!({ "final_response": answer }), at));
        frames
    }

    /// The query and its answer, for a client that stores memories. The frame has no number, because
    /// clients do not count it.
    pub(crate) fn memory(&self, at: Time) -> Option<Frame> {
        let (query, answer) = (self.original.trim(), self.answer().trim());
        let payload = json!({
            "user_query": query,
            "assistant_response": answer,
            "memory_type": "episodic",
            "user_id": self.context.user_id,
            "session_id": self.context.conversation_ref,
        });
        (!query.is_empty()).then(|| self.plain("memory-store", &payload, at))
    }

    fn answer(&self) -> &str {
        let candidates = [&self.step, &self.streamed, &self.complete];
        let answer = candidates.into_iter().find(|text| !text.trim().is_empty());
        answer.map_or(EMPTY, String::as_str)
    }

    /// The end of the turn.
    pub(crate) fn end(&mut self, payload: &Value, at: Time) -> Frame {
        Frame { ends: Some(at), ..self.frame("streaming-complete", payload, at) }
    }

    /// The client's id of the turn.
    pub(crate) fn name(&self) -> &str {
        self.context.turn_ref.as_deref().unwrap_or_default()
    }

    fn numbered(&mut self, kind: &str, payload: &Value, at: Time) -> Value {
        self.count += 1;
        let mut message = self.message(kind, payload, at);
        message["event_id"] = format!("{}-evt-{:06}-{kind}", self.name(), self.count).into();
        message["sequence"] = self.count.into();
        message
    }

    fn message(&self, kind: &str, payload: &Value, at: Time) -> Value {
        let mut message = envelope(kind, payload, &self.context, at);
        message["id"] = self.name().into();
        message
    }

    fn ready(&self, message: &Value) -> Frame {
        let (turn, text) = (self.name().into(), message.to_string());
        Frame { turn, text, ends: None, handover: None }
    }
}

#[cfg(test)]
mod tests;
