//! Imports messages of another conversation.

use crate::command::ImportedMessage;
use crate::event::{Event, RareOptions, TurnOptions};
use crate::session::Refusal;
use crate::session::decide::{require_idle, require_supported_part};
use crate::session::state::State;
use crate::stamp::Stamp;

/// Adds messages after the existing ones or instead of them.
pub(super) fn import_messages(
    state: &State,
    messages: Vec<ImportedMessage>,
    instead: bool,
    stamp: &Stamp,
) -> Result<Vec<Event>, Refusal> {
    if instead {
        require_idle(state)?;
    }
    for part in messages.iter().flat_map(|message| &message.parts) {
        require_supported_part(state, &[], state.current_model(), part)?;
    }
    let last = state.messages.last().filter(|_| state.forgotten < state.messages.len());
    let forgotten = last.filter(|_| instead).map(|last| Event::Forgotten { upto: last.id.clone() });
    let non_empty = messages.into_iter().filter(|message| !message.parts.is_empty());
    let added = |(ImportedMessage { role, parts, wording, call }, nth)| Event::MessageAdded {
        message: stamp.id(),
        turn: stamp.id(),
        role,
        parts,
        options: TurnOptions {
            wording,
            recalled: true,
            more: RareOptions { result_of: call, ..RareOptions::default() }.unless_empty(),
            ..TurnOptions::default()
        },
        nth,
    };
    let added = non_empty.zip(state.turns.len() as u64 + 1..).map(added);
    Ok(forgotten.into_iter().chain(added).collect())
}
