//! What a model is asked: the session's transcript as a prompt.

mod facts;
mod order;
mod review;
mod weight;

pub use order::in_order;

use std::collections::HashMap;
use std::sync::Arc;

use crate::change::{net, told};
use crate::context;
use crate::event::ToolUse;
use crate::id::{CallId, TurnId};
use crate::message::{MediaKind, Message, Part, Role, text_of};
use crate::model::{
    Account, ModelRef, Prompt, PromptCall, PromptMessage, PromptPart, Sampling, calls_said,
    text_said,
};
use crate::search;
use crate::session::State;
use crate::tool::{Ending, Spec};

pub(crate) use facts::summarized;
pub use review::{review, reviewed};
pub use weight::{Weight, weigh};

const INTERRUPTED: &str = "this call has no result";

/// The prompt for the open step of a session.
pub fn assemble(state: &State) -> Prompt {
    let open = state.open.as_ref();
    let model = open.and_then(|open| open.step()).map_or(state.current_model(), |step| &step.model);
    Prompt {
        tools: tools(state, model),
        may_call: open.is_none_or(|open| open.options.tools == ToolUse::Offered),
        search: search::by_provider(state, model),
        model: model.clone(),
        system: system(state),
        messages: conversation(state, &history(state)),
        sampling: open.map(|open| open.options.sampling.clone()).unwrap_or_default(),
        account: account(state),
    }
}

/// Whose means the turn under way is worked on with, or the last one was.
fn account(state: &State) -> Option<Account> {
    let last = || state.turns.iter().rev().find(|turn| turn.started.is_some());
    let options = state.open.as_ref().map(|open| &open.options);
    options.or_else(|| last().map(|turn| &turn.options))?.account().cloned()
}

/// The prompt that has a session's older history summarized.
pub fn summarize(state: &State) -> Prompt {
    let upto = state.compaction.pending.as_ref();
    let all = history(state);
    let end = all.iter().position(|message| Some(&message.id) == upto).map_or(all.len(), |n| n + 1);
    let mut messages = conversation(state, &all[..end]);
    let question = match state.rules.save_memory {
        true => format!("{ASK_FOR_SUMMARY} {}", facts::ASK_FOR_FACTS),
        false => ASK_FOR_SUMMARY.into(),
    };
    messages.push(said(question));
    aside(state, messages)
}

/// A question beside the conversation, to be answered in words.
fn aside(state: &State, messages: Vec<PromptMessage>) -> Prompt {
    let model: ModelRef = state.current_model().clone();
    Prompt {
        tools: tools(state, &model),
        may_call: false,
        search: search::by_provider(state, &model),
        model,
        system: system(state),
        messages,
        sampling: Sampling::default(),
        account: account(state),
    }
}

fn tools(state: &State, model: &ModelRef) -> Vec<Arc<Spec>> {
    match state.rules.profile(model) {
        Some(profile) if profile.tools => state.tools(),
        _ => Vec::new(),
    }
}

const ASK_FOR_SUMMARY: &str = "Summarize this conversation for yourself, because you will go on with \
only the summary. Keep, in the user's own words where they matter: what the user wants and any \
standing instructions, decisions and why they were taken, files and commands that matter, what is \
done and verified, what is still open. Write the summary only.";

/// Standing instructions of a session, exactly as models get them.
pub fn system(state: &State) -> String {
    let workspace = format!("The workspace is {}.", state.workspace.display());
    let given = state.messages.iter().filter(|message| message.role == Role::System);
    let parts = state.system_prompt.iter().cloned().chain(given.map(|message| message.text()));
    let context = match state.context.base.is_empty() {
        true => String::new(),
        false => context::introduction(&state.context.base),
    };
    parts
        .chain([workspace, context])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// The messages that count: of each turn its clients' words and its latest attempt. A turn that is
/// tried again sees what it saw the first time, and nothing that was said after it. What belongs to a
/// turn stands together, also if the next one was asked for before this one was answered.
pub(crate) fn history(state: &State) -> Vec<&Arc<Message>> {
    let turn_index: HashMap<_, _> =
        state.turns.iter().enumerate().map(|(n, turn)| (&turn.id, n)).collect();
    let last = match &state.open {
        Some(open) => turn_index.get(&open.id).copied().unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let counts = |message: &&Arc<Message>| {
        let Some(&n) = turn_index.get(&message.turn) else {
            return true;
        };
        let current = message.attempt == 0 || message.attempt == state.turns[n].attempts;
        current && n <= last && !message.interrupted && message.role != Role::System
    };
    let asked =
        |message: &Arc<Message>| state.open.as_ref().is_some_and(|open| open.id == message.turn);
    let known = state.messages.iter().enumerate();
    let known = known.filter(|(n, message)| *n >= state.forgotten || asked(message));
    let mut messages: Vec<_> = known.map(|(_, message)| message).filter(counts).collect();
    messages.sort_by_key(|message| turn_index.get(&message.turn));
    messages
}

fn conversation(state: &State, history: &[&Arc<Message>]) -> Vec<PromptMessage> {
    let summary = state.compaction.summary.as_ref();
    // What the open turn is about is never left to a summary.
    let past = |message: &Message| state.open.as_ref().is_none_or(|open| message.turn != open.id);
    let old = summary.and_then(|summary| {
        history.iter().position(|message| message.id == summary.upto && past(message))
    });
    let mut messages = Vec::with_capacity(history.len() + 1);
    let mut recent = history;
    if let (Some(summary), Some(old)) = (summary, old) {
        let text = format!("Summary of the conversation so far:\n{}", summary.text);
        messages.push(said(text));
        recent = &history[old + 1..];
    }
    let results: HashMap<&CallId, &Message> =
        recent.iter().filter_map(|message| Some((message.call.as_ref()?, &***message))).collect();
    for (n, message) in recent.iter().enumerate() {
        let begins = n == 0 || recent[n - 1].turn != message.turn;
        if begins {
            messages.extend(noticed(state, &message.turn));
        }
        translate(state, message, &results, &mut messages);
        let ends = recent.get(n + 1).is_none_or(|next| next.turn != message.turn);
        if ends {
            messages.extend(undone(state, &message.turn));
        }
    }
    messages
}

/// What had changed in the workspace when a turn began.
fn noticed(state: &State, turn: &TurnId) -> Option<PromptMessage> {
    let of_turn = state.context.updates.iter().filter(|update| update.turn == *turn);
    let sections: Vec<_> = of_turn.flat_map(|update| update.sections.iter().cloned()).collect();
    (!sections.is_empty()).then(|| said(context::update(&sections)))
}

/// That a turn's changes are not there any more.
fn undone(state: &State, turn: &TurnId) -> Option<PromptMessage> {
    let turn = state.turn(turn).filter(|turn| turn.reverted)?;
    let changes = net(&turn.changes);
    Some(said(format!("I undid these changes to files: {}.", told(&changes).join(", "))))
}

fn said(text: String) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text)])
}

fn translate(
    state: &State,
    message: &Message,
    results: &HashMap<&CallId, &Message>,
    out: &mut Vec<PromptMessage>,
) {
    match message.role {
        Role::Assistant => assistant(state, message, results, out),
        // A result stands right behind its call, see `assistant`.
        Role::Tool if message.call.is_some() => {}
        Role::Tool | Role::User | Role::System => {
            out.extend(beside(message));
            out.push(PromptMessage::User(user(state, message)));
        }
    }
}

fn assistant(
    state: &State,
    message: &Message,
    results: &HashMap<&CallId, &Message>,
    out: &mut Vec<PromptMessage>,
) {
    let parts = in_order(message);
    let calls: Vec<PromptCall> = calls_said(&parts).cloned().collect();
    if calls.is_empty() && text_said(&parts).is_empty() {
        return;
    }
    out.push(PromptMessage::Assistant { by: message.by.clone(), parts });
    for PromptCall { call, tool, .. } in calls {
        let result = results.get(&call);
        let ok = result.is_some_and(|message| {
            matches!(message.ending, Some(Ending::Succeeded | Ending::Idle))
        });
        let text = result.map_or_else(|| INTERRUPTED.into(), |message| text_of(&message.parts));
        let media = result.map_or_else(Vec::new, |message| shown(state, message));
        out.push(PromptMessage::Result { call, tool, text, media, ok });
    }
}

/// The files that a result shows to the model.
fn shown(state: &State, result: &Message) -> Vec<PromptPart> {
    let media = |part: &Part| match part {
        Part::Media { kind, name, mime } => media(state, result, (*kind, name, mime.as_deref())),
        Part::Text(_) | Part::Context(_) | Part::Thought(_) | Part::Call { .. } => None,
    };
    result.parts.iter().filter_map(media).collect()
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

fn user(state: &State, message: &Message) -> Vec<PromptPart> {
    let part = |part: &Part| match part {
        Part::Text(_) if message.wording.is_some() => None,
        Part::Text(text) => Some(PromptPart::Text(text.clone())),
        Part::Media { kind, name, mime } => media(state, message, (*kind, name, mime.as_deref())),
        Part::Context(_) | Part::Thought(_) | Part::Call { .. } => None,
    };
    let worded = message.wording.iter().cloned().map(PromptPart::Text);
    worded.chain(message.parts.iter().filter_map(part)).collect()
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

#[cfg(test)]
mod tests;
