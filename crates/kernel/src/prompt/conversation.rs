//! A history as the messages of a prompt: every result behind its call, what is old shortened.

use std::collections::HashMap;
use std::sync::Arc;

use crate::change::{net, told};
use crate::context::{self, Section};
use crate::id::{CallId, TurnId};
use crate::message::{MediaKind, Message, Part, Role, text_of};
use crate::model::{PromptCall, PromptMessage, PromptPart, calls_said, text_said};
use crate::session::State;
use crate::tool::Ending;

use super::shorten::{Shorten, shortened};
use super::{Entry, History, in_order};

const INTERRUPTED: &str = "this call has no result";

/// Writes a history as the messages of a prompt.
pub(super) fn conversation(
    state: &State,
    history: &History<'_>,
    shorten: Shorten,
) -> Vec<PromptMessage> {
    let results =
        history.recent.iter().filter_map(|entry| Some((entry.message.call.as_ref()?, *entry)));
    let mut writer = Writer { state, shorten, results: results.collect(), messages: Vec::new() };
    writer.messages.reserve(history.recent.len() + 2);
    let noticed = noticed(state);
    let told = |turn: &TurnId| noticed.get(turn).map(|news| said(context::update(news)));
    if let Some(request) = &history.request {
        writer.messages.extend(told(&request.message.turn));
        writer.write(request);
    }
    if let Some(summary) = history.summary {
        let heading = if history.request.is_some() {
            "Summary of the conversation so far, with the work on the message above:"
        } else {
            "Summary of the conversation so far:"
        };
        writer.messages.push(said(format!("{heading}\n{}", summary.text)));
    }
    let recent = &history.recent;
    let asked = history.request.map(|entry| &entry.message.turn);
    for (n, entry) in recent.iter().enumerate() {
        let turn = &entry.message.turn;
        let begins = n == 0 || recent[n - 1].message.turn != *turn;
        if begins && asked != Some(turn) {
            writer.messages.extend(told(turn));
        }
        writer.write(entry);
        let ends = recent.get(n + 1).is_none_or(|next| next.message.turn != *turn);
        if ends {
            writer.messages.extend(undone(state, turn));
        }
    }
    writer.messages
}

/// What had changed in the workspace when turns began.
fn noticed(state: &State) -> HashMap<&TurnId, Vec<Section>> {
    let mut by_turn: HashMap<&TurnId, Vec<Section>> = HashMap::new();
    for update in &state.context.updates {
        by_turn.entry(&update.turn).or_default().extend_from_slice(&update.sections);
    }
    by_turn
}

/// That a turn's changes are not there any more.
fn undone(state: &State, turn: &TurnId) -> Option<PromptMessage> {
    let turn = state.turn(turn).filter(|turn| turn.reverted)?;
    let changes = net(&turn.changes);
    Some(said(format!("I undid these changes to files: {}.", told(&changes).join(", "))))
}

/// A message in plain words.
pub(super) fn said(text: String) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text)])
}

struct Writer<'a> {
    state: &'a State,
    shorten: Shorten,
    results: HashMap<&'a CallId, Entry<'a>>,
    messages: Vec<PromptMessage>,
}

impl Writer<'_> {
    fn write(&mut self, entry: &Entry<'_>) {
        let message = entry.message;
        match message.role {
            Role::Assistant => self.assistant(message),
            // A result stands right behind its call, see `assistant`.
            Role::Tool if message.call.is_some() => {}
            Role::Tool | Role::User | Role::System => {
                self.messages.extend(beside(message));
                let parts = self.client(entry);
                self.messages.push(PromptMessage::User(parts));
            }
        }
    }

    fn assistant(&mut self, message: &Message) {
        let parts = in_order(message);
        let calls: Vec<PromptCall> = calls_said(&parts).cloned().collect();
        if calls.is_empty() && text_said(&parts).is_empty() {
            return;
        }
        self.messages.push(PromptMessage::Assistant { by: message.by.clone(), parts });
        let together = calls.len();
        let results = calls.into_iter().map(|call| self.result(call, together));
        let results: Vec<PromptMessage> = results.collect();
        self.messages.extend(results);
    }

    fn result(&self, call: PromptCall, together: usize) -> PromptMessage {
        let PromptCall { call, tool, .. } = call;
        let Some(Entry { at, message }) = self.results.get(&call) else {
            let (text, media, ok) = (INTERRUPTED.into(), Vec::new(), false);
            return PromptMessage::Result { call, tool, text, media, ok };
        };
        let ok = matches!(message.ending, Some(Ending::Succeeded | Ending::Idle));
        let most = self.shorten.result_bytes(*at, together);
        let mut text = shortened(text_of(&message.parts), most);
        let mut media = Vec::new();
        for part in message.parts.iter().filter_map(|part| self.media(*at, message, part)) {
            match part {
                PromptPart::Text(note) => text = format!("{text}\n{note}"),
                PromptPart::Media { .. } => media.push(part),
            }
        }
        PromptMessage::Result { call, tool, text, media, ok }
    }

    /// A client's message, or what it says of a result that has no call here.
    fn client(&self, Entry { at, message }: &Entry<'_>) -> Vec<PromptPart> {
        let part = |part: &Part| match part {
            Part::Text(_) if message.wording.is_some() => None,
            Part::Text(text) => Some(PromptPart::Text(text.clone())),
            Part::Media { .. } => self.media(*at, message, part),
            Part::Context(_) | Part::Thought(_) | Part::Call { .. } => None,
        };
        let worded = message.wording.iter().cloned().map(PromptPart::Text);
        worded.chain(message.parts.iter().filter_map(part)).collect()
    }

    /// A file that a message names, its content still to be read; of an old one only the name. What
    /// the open turn is about is never old.
    fn media(&self, at: usize, message: &Message, part: &Part) -> Option<PromptPart> {
        let Part::Media { kind, name, mime } = part else { return None };
        let asked = self.state.open.as_ref().is_some_and(|open| open.id == message.turn);
        if self.shorten.is_old(at) && !(asked && message.attempt == 0) {
            return Some(PromptPart::Text(format!("[{} {name} left out]", kind.name())));
        }
        media(self.state, message, (*kind, name, mime.as_deref()))
    }
}

/// What the front end tells beside a message, in words of its own before it.
fn beside(message: &Message) -> Option<PromptMessage> {
    let told = message.parts.iter().filter_map(|part| match part {
        Part::Context(text) => Some(text.as_str()),
        Part::Text(_) | Part::Thought(_) | Part::Media { .. } | Part::Call { .. } => None,
    });
    let told = told.collect::<Vec<_>>().join("\n\n");
    (!told.is_empty()).then(|| said(told))
}

/// A file that a message names, its content still to be read.
fn media(
    state: &State,
    message: &Message,
    (kind, name, stated): (MediaKind, &str, Option<&str>),
) -> Option<PromptPart> {
    let left = message.files.iter().find(|file| file.name == name);
    let (mime, blob) = match left {
        Some(file) => (&file.mime, &file.blob),
        None => state.attachment(name).map(|file| (&file.mime, &file.blob))?,
    };
    Some(PromptPart::Media {
        kind,
        name: name.into(),
        mime: stated.unwrap_or(mime).into(),
        blob: blob.clone(),
        content: Arc::from([]),
    })
}
