//! Converts a history to the messages of a prompt: every result after its call, old results
//! shortened.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::change::{changed_paths, net_changes};
use crate::context::{self, Section};
use crate::id::CallId;
use crate::message::{MediaKind, Message, Part, Role, text_of};
use crate::model::{PromptMessage, PromptPart};
use crate::pictures;
use crate::session::State;
use crate::tool::Ending;

use super::shorten::{Shorten, shortened};
use super::{History, HistoryEntry, PromptCache, assistant_parts};

const MISSING_RESULT: &str = "this call has no result";

/// The messages of a prompt.
pub(super) type Messages = Vec<Arc<PromptMessage>>;

/// Converts a history to the messages of a prompt, reusing unchanged messages of the last one.
pub(super) fn conversation(
    state: &State,
    history: &History<'_>,
    shorten: Shorten,
    cache: &mut PromptCache,
) -> Messages {
    let recent = &history.recent;
    cache.begin_at(recent.iter().map(|entry| entry.at).min().unwrap_or(0));
    let messages = Vec::with_capacity(recent.len() + 2);
    let mut writer =
        MessageWriter { state, shorten, recent, results: OnceCell::new(), cache, messages };
    let changes = workspace_changes(state, history);
    if let Some(request) = &history.request {
        writer.add(
            changes.get(&request.turn).map(|sections| user_text(context::format_update(sections))),
        );
        writer.write(request);
    }
    if let Some(summary) = history.summary {
        let heading = if history.request.is_some() {
            "Summary of the conversation so far, with the work on the message above:"
        } else {
            "Summary of the conversation so far:"
        };
        writer.add(Some(user_text(format!("{heading}\n{}", summary.text))));
    }
    let asked = history.request.map(|entry| entry.turn);
    for (n, entry) in recent.iter().enumerate() {
        let turn = entry.turn;
        let begins = n == 0 || recent[n - 1].turn != turn;
        if begins && asked != Some(turn) {
            writer.add(
                changes.get(&turn).map(|sections| user_text(context::format_update(sections))),
            );
        }
        writer.write(entry);
        let ends = recent.get(n + 1).is_none_or(|next| next.turn != turn);
        if ends {
            writer.add(revert_note(state, turn));
        }
    }
    writer.messages
}

/// Workspace changes that were found when the turns of a history started, by turn index.
fn workspace_changes(state: &State, history: &History<'_>) -> HashMap<usize, Vec<Section>> {
    let first = history.request.iter().chain(history.recent.first()).map(|entry| entry.turn).min();
    let mut by_turn: HashMap<usize, Vec<Section>> = HashMap::new();
    for update in &state.context.updates {
        if let Some(turn) = state.turns.position(&update.turn).filter(|turn| Some(*turn) >= first) {
            by_turn.entry(turn).or_default().extend_from_slice(&update.sections);
        }
    }
    by_turn
}

/// The note that a turn's changes were undone, if they were.
fn revert_note(state: &State, turn: usize) -> Option<PromptMessage> {
    let turn = Some(&state.turns[turn]).filter(|turn| turn.reverted)?;
    let changes = net_changes(&turn.changes);
    let unlisted: u64 = turn.more_changes.iter().map(|(_, more)| more.count).sum();
    let more = if unlisted > 0 { format!(" and {unlisted} more") } else { String::new() };
    Some(user_text(format!(
        "I undid these changes to files: {}{more}.",
        changed_paths(&changes).join(", ")
    )))
}

/// A user message with plain text.
pub(super) fn user_text(text: String) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text)])
}

struct MessageWriter<'a> {
    state: &'a State,
    shorten: Shorten,
    recent: &'a [HistoryEntry<'a>],
    /// The results among `recent`, by call; built when the first call is written.
    results: OnceCell<HashMap<&'a CallId, HistoryEntry<'a>>>,
    cache: &'a mut PromptCache,
    messages: Messages,
}

impl<'a> MessageWriter<'a> {
    fn add(&mut self, message: Option<PromptMessage>) {
        self.messages.extend(message.map(Arc::new));
    }

    fn write(&mut self, entry: &HistoryEntry<'_>) {
        if let Some(written) = self.cache.alone(entry) {
            return self.messages.push(written);
        }
        let message = entry.message;
        match message.role {
            Role::Assistant => self.assistant(entry),
            // A result directly follows its call, see `assistant`.
            Role::Tool if message.call.is_some() => {}
            Role::Tool | Role::User | Role::System => {
                let beside = context_message(message);
                let alone = beside.is_none();
                self.add(beside);
                if names_files(message) {
                    let parts = self.parts_with_files(entry);
                    return self.add(Some(PromptMessage::User(parts)));
                }
                let write = |message: &Message| PromptMessage::User(text_parts(message));
                let written = self.cache.message(entry, usize::MAX, write);
                if alone {
                    self.cache.note_alone(entry);
                }
                self.messages.push(written);
            }
        }
    }

    fn assistant(&mut self, entry: &HistoryEntry<'_>) {
        let says = |part: &Part| match part {
            Part::Text(text) => !text.is_empty(),
            Part::Call { .. } => true,
            Part::Context(_) | Part::Thought(_) | Part::Media { .. } => false,
        };
        if !entry.message.parts.iter().any(says) {
            return;
        }
        let write = |message: &Message| PromptMessage::Assistant {
            by: message.by.clone(),
            parts: assistant_parts(message),
        };
        let answer = self.cache.message(entry, usize::MAX, write);
        self.messages.push(answer);
        let calls = entry.message.parts.iter().filter_map(|part| match part {
            Part::Call { call, tool, .. } => Some((call, tool.as_str())),
            Part::Text(_) | Part::Context(_) | Part::Thought(_) | Part::Media { .. } => None,
        });
        let together = calls.clone().count();
        if together == 0 {
            self.cache.note_alone(entry);
        }
        for call in calls {
            let result = self.result(call, together);
            self.messages.push(result);
        }
    }

    fn result(&mut self, (call, tool): (&CallId, &str), together: usize) -> Arc<PromptMessage> {
        let recent = self.recent;
        let called = |entry: &HistoryEntry<'a>| Some((entry.message.call.as_ref()?, *entry));
        let results = self.results.get_or_init(|| recent.iter().filter_map(called).collect());
        let Some(entry) = results.get(call).copied() else {
            let (call, tool, text) = (call.clone(), tool.into(), MISSING_RESULT.into());
            let missing = PromptMessage::Result { call, tool, text, media: Vec::new(), ok: false };
            return Arc::new(missing);
        };
        let limit = self.shorten.result_bytes(entry.at, together);
        let write = |message: &Message| PromptMessage::Result {
            call: call.clone(),
            tool: tool.into(),
            text: shortened(text_of(&message.parts), limit),
            media: Vec::new(),
            ok: matches!(message.ending, Some(Ending::Succeeded | Ending::Idle)),
        };
        if !names_files(entry.message) {
            return self.cache.message(&entry, limit, write);
        }
        let mut result = write(entry.message);
        if let PromptMessage::Result { text, media, .. } = &mut result {
            for part in entry.message.parts.iter().filter_map(|part| self.media(&entry, part)) {
                match part {
                    PromptPart::Text(note) => *text = format!("{text}\n{note}"),
                    PromptPart::Media { .. } => media.push(part),
                }
            }
        }
        Arc::new(result)
    }

    /// The parts of a client's message with files, or of a result whose call is not in the history.
    fn parts_with_files(&self, entry: &HistoryEntry<'_>) -> Vec<PromptPart> {
        let message = entry.message;
        let part = |part: &Part| match part {
            Part::Text(_) if message.wording.is_some() => None,
            Part::Text(text) => Some(PromptPart::Text(text.clone())),
            Part::Media { .. } => self.media(entry, part),
            Part::Context(_) | Part::Thought(_) | Part::Call { .. } => None,
        };
        let worded = message.wording.iter().cloned().map(PromptPart::Text);
        worded.chain(message.parts.iter().filter_map(part)).collect()
    }

    /// A file that a message names, without its content; only the name if the message is old. Files
    /// of the open turn's message are never old.
    fn media(&self, entry: &HistoryEntry<'_>, part: &Part) -> Option<PromptPart> {
        let Part::Media { kind, name, mime } = part else { return None };
        let message = entry.message;
        let asked = self.state.open.as_ref().is_some_and(|open| open.id == message.turn);
        if self.shorten.is_old(entry.at) && !(asked && message.attempt == 0) {
            return Some(PromptPart::Text(format!("[{} {name} left out]", kind.name())));
        }
        media(self.state, message, (*kind, name, mime.as_deref()))
    }
}

/// True if the prompt form of a message depends on its files and their age.
fn names_files(message: &Message) -> bool {
    message.parts.iter().any(|part| matches!(part, Part::Media { .. }))
}

/// The text of a client's message, as models read it.
fn text_parts(message: &Message) -> Vec<PromptPart> {
    let text = |part: &Part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Context(_) | Part::Thought(_) | Part::Media { .. } | Part::Call { .. } => None,
    };
    match &message.wording {
        Some(wording) => vec![PromptPart::Text(wording.clone())],
        None => message.parts.iter().filter_map(text).map(PromptPart::Text).collect(),
    }
}

/// The front end's context for a message, as a message of its own before it.
fn context_message(message: &Message) -> Option<PromptMessage> {
    let context = message.parts.iter().filter_map(|part| match part {
        Part::Context(text) => Some(text.as_str()),
        Part::Text(_) | Part::Thought(_) | Part::Media { .. } | Part::Call { .. } => None,
    });
    let context = context.collect::<Vec<_>>().join("\n\n");
    (!context.is_empty()).then(|| user_text(context))
}

/// A file that a message names, without its content.
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
    let model = state.open.as_ref().and_then(|open| open.step()).map(|step| &step.model);
    let model = model.unwrap_or(state.current_model());
    if let Some(note) =
        pictures::placeholder_text(state, model, (kind, name, stated.unwrap_or(mime)))
    {
        return Some(PromptPart::Text(note));
    }
    Some(PromptPart::Media {
        kind,
        name: name.into(),
        mime: stated.unwrap_or(mime).into(),
        blob: blob.clone(),
        content: Arc::from([]),
        detail: None,
    })
}
