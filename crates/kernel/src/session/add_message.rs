//! Adds messages: a message, its files and its setup are decided together. A message that has to
//! wait keeps them until its turn starts.

use std::sync::Arc;

use crate::command::{NewMessage, TurnStart};
use crate::event::{Event, Setup};
use crate::id::TurnId;
use crate::message::Part;
use crate::session::Refusal;
use crate::session::attach::attach_to;
use crate::session::client_tools;
use crate::session::decide::{require_idle, require_known_model, require_supported_part};
use crate::session::state::State;
use crate::session::supersede::supersede;
use crate::session::turn::Turn;
use crate::stamp::Stamp;

/// Decides on a message.
pub(super) fn on_add_message(
    state: &State,
    mut say: NewMessage,
    stamp: &Stamp,
) -> Result<Vec<Event>, Refusal> {
    if say.parts.is_empty() && say.files.is_empty() {
        return Err(Refusal::EmptyMessage);
    }
    if let Some(sent) = say.options.key.as_ref().and_then(|key| state.turn_by_key(key)) {
        return repeated_message(state, sent, &say);
    }
    let model =
        say.options.model.as_ref().or(state.model.as_ref()).unwrap_or(&state.rules.default_model);
    let model = model.clone();
    require_known_model(state, &model)?;
    if let Some(toolset) = &say.setup.toolset {
        client_tools::check_tools(state, toolset)?;
    }
    let files = attach_to(state, &mut say, stamp)?;
    for part in &say.parts {
        require_supported_part(state, &files, &model, part)?;
    }
    let at_once = match say.run {
        TurnStart::Now => {
            require_idle(state)?;
            true
        }
        TurnStart::Queued => !state.busy() && state.turns.next_queued().is_none(),
        TurnStart::Later => false,
    };
    let replaced = match &say.supersedes {
        Some(turn) => supersede(state, turn)?,
        None => Vec::new(),
    };
    let attached = files.into_iter().map(Event::AttachmentAdded);
    Ok(replaced
        .into_iter()
        .chain(attached)
        .chain(message_events(state, say, at_once, stamp))
        .collect())
}

/// The events of a message. Its setup applies at once, or is stored until its turn starts.
fn message_events(state: &State, say: NewMessage, at_once: bool, stamp: &Stamp) -> Vec<Event> {
    let NewMessage { role, parts, run, mut options, setup, .. } = say;
    options.queued = run == TurnStart::Queued;
    let mut events = if at_once { setup_events(state, &setup) } else { Vec::new() };
    let waits = !at_once && setup != Setup::default();
    let options = options.with_setup(waits.then(|| Arc::new(setup)));
    let (message, turn) = (stamp.id(), stamp.id::<TurnId>());
    let started = Event::TurnStarted { turn: turn.clone(), attempt: 1, options: options.clone() };
    let nth = state.turns.len() as u64 + 1;
    events.push(Event::MessageAdded { message, turn, role, parts, options, nth });
    // A queued message starts its turn automatically, now or later.
    events.extend((run == TurnStart::Now).then_some(started));
    events
}

/// Starts or restarts a turn, with the setup of its message.
pub(super) fn start_turn(state: &State, turn: &Turn) -> Vec<Event> {
    let mut events =
        turn.options.setup().map(|setup| setup_events(state, setup)).unwrap_or_default();
    let options = turn.options.clone().with_setup(None);
    let attempt = turn.attempts + 1;
    events.push(Event::TurnStarted { turn: turn.id.clone(), attempt, options });
    events
}

/// The events that change the session's setup; none for what is unchanged.
fn setup_events(state: &State, setup: &Setup) -> Vec<Event> {
    let Setup { system_prompt, toolset, workspace } = setup;
    let prompt = system_prompt.clone().filter(|_| state.system_prompt != *system_prompt);
    let tools = toolset.clone().filter(|toolset| *toolset != state.toolset);
    let folder = workspace.clone().filter(|workspace| *workspace != state.workspace);
    let prompt = prompt.map(|prompt| Event::Instructed { system_prompt: Some(prompt) });
    let folder = folder.map(|workspace| Event::Moved { workspace });
    prompt.into_iter().chain(tools.map(Event::ToolsChosen)).chain(folder).collect()
}

/// A message that was added before changes nothing. Its attachments have other names, so they are
/// not compared.
fn repeated_message(state: &State, sent: &Turn, say: &NewMessage) -> Result<Vec<Event>, Refusal> {
    let is_compared = |part: &&Part| say.files.is_empty() || !matches!(part, Part::Media { .. });
    if state.messages[sent.message_at].parts.iter().filter(is_compared).eq(&say.parts) {
        Ok(Vec::new())
    } else {
        Err(Refusal::KeyReused(sent.id.clone()))
    }
}
