//! Extracts the messages from the events of a session.
//!
//! An answer arrives in pieces and is a message once its step has ended. Until then the position
//! stays before its first piece, so that a reader that resumes there gets all of it.

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::message::{Role, text_of};
use quintet_kernel::model::Channel;
use quintet_kernel::{MessageId, StepId, Time, TurnId};
use serde_json::Value;

/// Maximum indexed length of a user's or model's message, in bytes.
const MESSAGE_LIMIT: usize = 64 * 1024;

/// Maximum indexed length of a tool's output, in bytes.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// A message in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedMessage {
    /// The event that completed the message.
    pub seq: Seq,
    /// The turn.
    pub turn: TurnId,
    /// The id of the message.
    pub message: MessageId,
    /// The author.
    pub role: Role,
    /// The time of the event.
    pub at: Time,
    /// The text, without thoughts and attachments; shortened if it is long.
    pub text: String,
}

/// Collects the messages from the events of one session, in order.
#[derive(Clone, Debug)]
pub struct Collector {
    read: Seq,
    open: Option<OpenAnswer>,
}

/// The text of an open step.
#[derive(Clone, Debug)]
struct OpenAnswer {
    step: StepId,
    begins: Seq,
    text: String,
}

impl Collector {
    /// Starts after an event: the position of an earlier collector, or 0.
    pub fn new(after: Seq) -> Self {
        Self { read: after, open: None }
    }

    /// The last event that was processed.
    pub fn read(&self) -> Seq {
        self.read
    }

    /// The last event whose messages were all returned: where another collector may start.
    pub fn position(&self) -> Seq {
        self.open.as_ref().map_or(self.read, |answer| answer.begins - 1)
    }

    /// Processes the next event and returns the message that it completes.
    pub fn take(&mut self, record: &Record) -> Option<IndexedMessage> {
        self.read = record.seq;
        let (turn, message, role, text) = match &record.event {
            Event::MessageAdded { message, turn, role, parts, .. } => {
                (turn, message, *role, text_of(parts))
            }
            Event::TextAppended { step, channel: Channel::Text, text, .. } => {
                self.append(step, record.seq, text);
                return None;
            }
            Event::ModelCompleted { turn, step, message, .. }
            | Event::StepInterrupted { turn, step, message, .. } => {
                let answer = self.open.take().filter(|answer| answer.step == *step)?;
                (turn, message.as_ref()?, Role::Assistant, answer.text)
            }
            Event::CallCompleted { turn, message, outcome, .. } => {
                let text = readable(text_of(&outcome.parts));
                let error = outcome.error.as_deref().filter(|error| !text.contains(error));
                let text = [text.as_str(), error.unwrap_or_default()].join("\n");
                (turn, message, Role::Tool, text)
            }
            _ => return None,
        };
        let limit = if role == Role::Tool { OUTPUT_LIMIT } else { MESSAGE_LIMIT };
        let text = text[..text.floor_char_boundary(limit)].trim();
        (!text.is_empty()).then(|| IndexedMessage {
            seq: record.seq,
            turn: turn.clone(),
            message: message.clone(),
            role,
            at: record.at,
            text: text.to_owned(),
        })
    }

    fn append(&mut self, step: &StepId, seq: Seq, text: &str) {
        let same = self.open.take_if(|answer| answer.step == *step);
        let begin = || OpenAnswer { step: step.clone(), begins: seq, text: String::new() };
        let mut answer = same.unwrap_or_else(begin);
        let room = MESSAGE_LIMIT.saturating_sub(answer.text.len());
        answer.text.push_str(&text[..text.floor_char_boundary(room)]);
        self.open = Some(answer);
    }
}

/// The texts in a JSON result, such as the output of a command, one per line; other results
/// unchanged. In raw JSON, a word at the beginning of a line would be indexed wrongly: `\nword`.
fn readable(result: String) -> String {
    if !result.starts_with(['{', '[']) {
        return result;
    }
    let Ok(value) = serde_json::from_str::<Value>(&result) else { return result };
    let mut texts = Vec::new();
    add_texts(&value, &mut texts);
    texts.join("\n")
}

fn add_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| add_texts(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
