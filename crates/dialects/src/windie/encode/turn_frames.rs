//! The frames of one turn: numbered, each sent once, and no numbered frame after the end.

use std::collections::HashMap;

use quintet_kernel::{CallId, Time, TurnId};
use serde_json::{Value, json};

use super::Spans;
use super::tool_dispatch::{DispatchedCalls, ToolDispatch};
use crate::windie::wire::{Context, envelope};

/// What is said for a model that did something and said nothing.
const EMPTY: &str =
    "I completed the requested action(s), but the model returned an empty final response.";

/// A message to a client, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The turn, by the client's name for it.
    pub(crate) turn: String,
    pub(crate) text: String,
    /// When the turn ended, if this is what says so.
    pub(crate) ends: Option<Time>,
    /// The calls that it hands over, if it does.
    pub(crate) hands: Option<Box<Hands>>,
}

impl Frame {
    /// Hands nothing over any more.
    pub(crate) fn show(&mut self) {
        if let Some(hands) = self.hands.take() {
            self.text = hands.shown;
        }
    }
}

/// Calls that a message hands over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hands {
    /// The calls that the client still has to run.
    pub(crate) calls: Vec<CallId>,
    /// The message for clients that do not run them: it has the same number, and only shows them.
    pub(crate) shown: String,
}

/// One turn.
#[derive(Debug, Default)]
pub(crate) struct TurnFrames {
    /// The turn; none for a summary that a client asked for.
    pub(crate) turn: Option<TurnId>,
    /// What the user said.
    pub(crate) original: String,
    /// What the client calls the history that the turn leads to, if it keeps it.
    pub(crate) revision: Option<String>,
    /// How often the model was asked.
    pub(crate) steps: u64,
    /// How many tokens came to it since the model was last asked, by a rule of thumb.
    pub(crate) added: u64,
    pub(crate) dispatch: ToolDispatch,
    /// The arguments of the calls of this step.
    pub(crate) requested: HashMap<CallId, Value>,
    /// Since when calls run.
    pub(crate) running: HashMap<CallId, Time>,
    /// What of it takes time.
    pub(crate) spans: Spans,
    /// Whether the client has stopped it: it is sent no more of it but the end.
    pub(crate) stopped: bool,
    /// The user, the conversation, and the client's name for the turn.
    context: Context,
    count: u64,
    /// What the model said in this step.
    step: String,
    /// What it said in all of them, as far as the client was sent it.
    said: String,
    /// The last message that was whole.
    whole: String,
}

impl TurnFrames {
    pub(crate) fn new(turn: Option<TurnId>, context: Context) -> Self {
        Self { turn, context, ..Self::default() }
    }

    /// The next message, with its number.
    pub(crate) fn frame(&mut self, kind: &str, payload: &Value, at: Time) -> Frame {
        self.count += 1;
        let mut frame = envelope(kind, payload, &self.context, at);
        frame["event_id"] = format!("{}-evt-{:06}-{kind}", self.name(), self.count).into();
        frame["sequence"] = self.count.into();
        self.close(frame)
    }

    /// The message that hands calls over.
    pub(crate) fn hand(&mut self, handed: &DispatchedCalls, at: Time) -> Frame {
        let (kind, payload) = handed.message();
        let frame = self.frame(kind, &payload, at);
        self.count -= 1;
        let shown = self.frame(kind, &handed.shown(), at).text;
        Frame { hands: Some(Box::new(Hands { calls: handed.calls(), shown })), ..frame }
    }

    /// A message that has no number.
    pub(crate) fn plain(&self, kind: &str, payload: &Value, at: Time) -> Frame {
        self.close(envelope(kind, payload, &self.context, at))
    }

    /// Takes back messages that are not sent: so many were.
    pub(crate) fn recount(&mut self, count: u64) {
        self.count = count;
    }

    /// From now on the conversation has this name.
    pub(crate) fn rename(&mut self, conversation: &str) {
        self.context.conversation_ref = Some(conversation.into());
    }

    /// The model is asked.
    pub(crate) fn step(&mut self) {
        self.steps += 1;
        self.step.clear();
    }

    /// The model says something.
    pub(crate) fn say(&mut self, text: &str, at: Time) -> Frame {
        self.step.push_str(text);
        self.said.push_str(text);
        self.frame("streaming-response", &json!({ "text": text }), at)
    }

    /// What it said in this step, if anything; it is whole now.
    pub(crate) fn complete(&mut self, at: Time) -> Option<Frame> {
        if self.step.is_empty() {
            return None;
        }
        self.whole.clone_from(&self.step);
        let payload = json!({ "content": self.step });
        Some(self.frame("assistant-message-full", &payload, at))
    }

    /// The turn ended well. A client that was sent no text is sent some.
    pub(crate) fn finish(&mut self, at: Time) -> Vec<Frame> {
        let answer = self.answer().to_owned();
        let mut frames = Vec::new();
        if self.said.trim().is_empty() {
            frames.push(self.frame("streaming-response", &json!({ "text": answer }), at));
        }
        frames.push(self.end(&json!({ "final_response": answer }), at));
        frames
    }

    /// What the user asked and what came of it, for a client that remembers it. It has no number:
    /// what counts messages does not know it.
    pub(crate) fn memory(&self, at: Time) -> Option<Frame> {
        let (asked, answer) = (self.original.trim(), self.answer().trim());
        let payload = json!({
            "user_query": asked,
            "assistant_response": answer,
            "memory_type": "episodic",
            "user_id": self.context.user_id,
            "session_id": self.context.conversation_ref,
        });
        (!asked.is_empty()).then(|| self.plain("memory-store", &payload, at))
    }

    fn answer(&self) -> &str {
        let candidates = [&self.step, &self.said, &self.whole];
        let answer = candidates.into_iter().find(|text| !text.trim().is_empty());
        answer.map_or(EMPTY, String::as_str)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// How much the model said in this step, in characters.
    pub(crate) fn written(&self) -> usize {
        self.step.chars().count()
    }

    /// The turn ended.
    pub(crate) fn end(&mut self, payload: &Value, at: Time) -> Frame {
        Frame { ends: Some(at), ..self.frame("streaming-complete", payload, at) }
    }

    /// The client's name for the turn.
    pub(crate) fn name(&self) -> &str {
        self.context.turn_ref.as_deref().unwrap_or_default()
    }

    fn close(&self, mut frame: Value) -> Frame {
        frame["id"] = self.name().into();
        Frame { turn: self.name().into(), text: frame.to_string(), ends: None, hands: None }
    }
}
