//! Applies events to a state. Never fails: an event is a fact, even if it makes no sense here.

mod calls;
mod compaction;
mod fork;

use std::sync::Arc;
use std::time::Duration;

use crate::event::{Event, NewSession, Record, RequestedCall, SubagentUpdate, TurnOptions};
use crate::id::{CallId, MessageId, SessionId, StepId, TurnId};
use crate::message::{Message, Part, Role};
use crate::model::{Channel, ModelRef, Sealed, Usage};
use crate::session::turn::{OpenStep, OpenTurn, Phase, Segment, Turn, TurnStatus};
use crate::session::{SessionData, State, subagents};
use crate::session_summary::Status;
use crate::subagent::DEPTH_LABEL;
use crate::time::Time;
use crate::tool::Ending;
use crate::toolset::{ClientTool, Toolset};

use calls::{call_part, new_call};

/// Applies one event to the state. The rules are not consulted.
pub fn evolve(state: &mut State, record: &Record) {
    apply(&mut state.data, record);
}

fn apply(state: &mut SessionData, record: &Record) {
    let at = record.at;
    state.head = record.seq;
    state.updated = at;
    match &record.event {
        Event::SessionCreated(origin) => created(state, origin, at),
        Event::Forked { parent, at: seq } => fork::forked(state, parent, *seq, at),
        Event::Labelled { key, value } => labelled(state, key, value.as_ref()),
        Event::ModelSwitched { model } => model_switched(state, model),
        Event::Instructed { system_prompt } => system_prompt_changed(state, system_prompt.as_ref()),
        Event::Moved { workspace } => state.workspace.clone_from(workspace),
        Event::Forgotten { upto } => compaction::forgotten(state, upto),
        Event::Superseded { from } => superseded(state, from),
        Event::ToolsChosen(toolset) => tools_chosen(state, toolset),
        Event::AttachmentAdded(file) => state.add_attachment(file.clone()),
        Event::MessageAdded { message, turn, role, parts, options, .. } => {
            message_added(state, AddedMessage { message, turn, role: *role, parts, options }, at);
        }
        Event::TurnStarted { turn, attempt, options } => {
            turn_started(state, turn, *attempt, options, at);
        }
        Event::ContextGathered { turn, sections, .. } => {
            state.context.apply(turn, sections);
            change_open_turn(state, |open| open.surveyed = true);
        }
        Event::StepStarted { step, model, context_window, shortened, .. } => {
            step_started(state, step, model, *context_window);
            compaction::shortened(state, shortened.as_ref());
        }
        Event::TextAppended { step, channel, text, .. } => {
            change_open_step(state, step, |open| open.write(*channel, text))
        }
        Event::ModelRetrying { .. } => {}
        Event::ModelCompleted { step, message, calls, usage, sealed, by, .. } => {
            model_completed(state, step, message.as_ref(), calls, at);
            if message.is_some() {
                set_author(state, by.as_ref(), sealed);
            }
            count_model_usage(state, *usage);
            compaction::tokens_counted(state, *usage);
        }
        Event::StepInterrupted { step, message, context_window, .. } => {
            step_interrupted(state, step, message.as_ref(), at);
            compaction::limit_window(state, *context_window);
        }
        Event::VerificationRequested { .. }
        | Event::ReviewRequested { .. }
        | Event::Reviewed { .. }
        | Event::ApprovalRequested { .. }
        | Event::ApprovalAnswered { .. }
        | Event::CallStarted { .. }
        | Event::QuestionAsked { .. }
        | Event::QuestionAnswered { .. }
        | Event::CallClaimed { .. }
        | Event::ClaimHolderLost { .. }
        | Event::ClaimReleased { .. } => calls::evolve(state, &record.event, at),
        Event::CallCompleted { call, .. } => {
            subagents::call_ended(state, call);
            calls::evolve(state, &record.event, at);
        }
        Event::Subagent { turn, call, session, news } => {
            subagent(state, (turn, call, session), news, at);
        }
        Event::StopRequested { cause, .. } => {
            change_open_turn(state, |open| open.stopping = Some(cause.clone()))
        }
        Event::TurnResumed { after_ms, .. } => {
            turn_resumed(state, Duration::from_millis(*after_ms));
        }
        Event::TurnHeld { .. } => set_held(state, true, at),
        Event::TurnReleased { .. } => set_held(state, false, at),
        Event::TurnCompleted { turn, verified, .. } => {
            turn_over(state, turn, TurnStatus::Succeeded, None, at);
            state.turns.change(turn, |turn| turn.verified = *verified);
        }
        Event::TurnFailed { turn, message, .. } => {
            turn_over(state, turn, TurnStatus::Failed, Some(message), at);
        }
        Event::TurnCancelled { turn, .. } => {
            turn_over(state, turn, TurnStatus::Cancelled, None, at)
        }
        Event::RevertRequested { turn } => state.reverting = Some(turn.clone()),
        Event::Reverted { turn, reapplied, .. } => {
            state.reverting = None;
            state.turns.change(turn, |turn| turn.reverted = !reapplied);
        }
        Event::RevertFailed { .. } => state.reverting = None,
        Event::CompactionRequested { upto, tokens, overflow } => {
            compaction::requested(state, upto, *tokens, *overflow);
        }
        Event::Compacted { upto, summary, usage, facts, tokens_after, .. } => {
            add_usage(state, *usage);
            compaction::compacted(state, upto, summary, *tokens_after);
            compaction::save_facts(state, upto, facts, at);
        }
        Event::CompactionFailed { .. } => compaction::failed(state),
        Event::MemorySaved { upto, .. } | Event::MemoryNotSaved { upto, .. } => {
            state.saving.retain(|saving| saving.upto != *upto);
        }
        Event::SessionClosed { .. } => state.status = Status::Completed,
    }
}

fn created(state: &mut SessionData, origin: &NewSession, at: Time) {
    state.created = Some(at);
    state.workspace.clone_from(&origin.workspace);
    state.system_prompt.clone_from(&origin.system_prompt);
    state.model.clone_from(&origin.model);
    state.labels.clone_from(&origin.labels);
    let depth = origin.labels.get(DEPTH_LABEL).and_then(|depth| depth.parse().ok());
    state.depth = depth.unwrap_or(0);
}

fn labelled(state: &mut SessionData, key: &str, value: Option<&String>) {
    match value {
        Some(value) => state.labels.insert(key.into(), value.clone()),
        None => state.labels.remove(key),
    };
}

fn model_switched(state: &mut SessionData, model: &ModelRef) {
    state.model = Some(model.clone());
    compaction::model_switched(state);
}

fn system_prompt_changed(state: &mut SessionData, system_prompt: Option<&String>) {
    state.system_prompt = system_prompt.cloned();
    compaction::prompt_changed(state);
}

fn tools_chosen(state: &mut SessionData, toolset: &Toolset) {
    state.toolset = toolset.clone();
    state.delegated = toolset.client.iter().map(ClientTool::spec).collect();
    compaction::prompt_changed(state);
}

/// Replaced turns are neither read by models nor shown. Workspace context that was sent with them moves to
/// the system prompt.
fn superseded(state: &mut SessionData, from: &TurnId) {
    let Some(first) = state.turns.position(from) else { return };
    state.turns.supersede(first);
    state.spoken =
        state.current_messages().filter(|message| message.role.is_conversation()).count() as u64;
    if state.turns.iter().all(|turn| turn.superseded) {
        state.title = None;
    }
    compaction::prompt_changed(state);
    state.context.fold_updates();
}

struct AddedMessage<'a> {
    message: &'a MessageId,
    turn: &'a TurnId,
    role: Role,
    parts: &'a [Part],
    options: &'a TurnOptions,
}

fn message_added(state: &mut SessionData, added: AddedMessage<'_>, at: Time) {
    state.turns.push(Turn {
        id: added.turn.clone(),
        message: added.message.clone(),
        begins: state.head,
        status: if added.options.recalled { TurnStatus::Succeeded } else { TurnStatus::Pending },
        workspace: state.workspace.clone(),
        options: added.options.clone(),
        attempts: 0,
        started: None,
        completed: None,
        error: None,
        verified: None,
        changes: Vec::new(),
        more_changes: Vec::new(),
        unrecorded: Vec::new(),
        reverted: false,
        superseded: false,
        message_at: state.messages.len(),
        read: Vec::new(),
    });
    state.add_message(Message {
        id: added.message.clone(),
        role: added.role,
        parts: added.parts.to_vec(),
        wording: added.options.wording.clone(),
        at,
        turn: added.turn.clone(),
        attempt: 0,
        call: added.options.result_of().cloned(),
        // The original ending is not known; an import does not report failures.
        ending: added.options.result_of().map(|_| Ending::Succeeded),
        interrupted: false,
        by: None,
        sealed: Vec::new(),
        files: Vec::new(),
    });
    // Calls of an imported history must not share ids with calls of this session.
    let called = added.parts.iter().filter_map(|part| match part {
        Part::Call { call, .. } => Some(call.clone()),
        Part::Text(_) | Part::Context(_) | Part::Thought(_) | Part::Media { .. } => None,
    });
    state.calls.extend(called);
}

fn turn_started(
    state: &mut SessionData,
    id: &TurnId,
    attempt: u32,
    options: &TurnOptions,
    at: Time,
) {
    let workspace = state.workspace.clone();
    state.turns.change(id, |turn| {
        turn.workspace = workspace;
        turn.status = TurnStatus::Running;
        let setup = turn.options.setup().cloned();
        turn.options = options.clone().with_setup(setup);
        turn.attempts = attempt;
        turn.read.retain(|at| *at == turn.message_at);
        turn.started = Some(at);
        turn.completed = None;
        turn.error = None;
    });
    state.open = Some(OpenTurn::new(id.clone(), attempt, options.clone(), at));
    compaction::turn_started(state, id, attempt);
    state.status = Status::Active;
    state.error = None;
}

/// Sets whether the open turn waits for a client's decision after a crash.
fn set_held(state: &mut SessionData, held: bool, at: Time) {
    change_open_turn(state, |open| open.held = held);
    update_waiting(state, at);
}

/// Time in which the daemon did not run does not count.
fn turn_resumed(state: &mut SessionData, span: Duration) {
    change_open_turn(state, |open| {
        open.clock.skip(span);
        if let Phase::Acting(calls) = &mut open.phase {
            for call in calls {
                call.expires = call.expires.map(|expires| expires.after(span));
            }
        }
    });
}

fn subagent(
    state: &mut SessionData,
    of: (&TurnId, &CallId, &SessionId),
    news: &SubagentUpdate,
    at: Time,
) {
    if let Some(usage) = subagents::apply_subagent_update(state, of, news) {
        state.usage = state.usage.plus(usage);
        if let Some(open) = state.open.as_mut().filter(|open| open.id == *of.0) {
            open.usage = open.usage.plus(usage);
        }
    }
    update_waiting(state, at);
}

fn step_started(
    state: &mut SessionData,
    id: &StepId,
    model: &ModelRef,
    context_window: Option<u64>,
) {
    let (id, model, output) = (id.clone(), model.clone(), Vec::new());
    let step = OpenStep { id, model, context_window, output, written: 0 };
    change_open_turn(state, |open| {
        open.surveyed = true;
        open.steps += 1;
        open.phase = Phase::Thinking(step);
    });
}

fn model_completed(
    state: &mut SessionData,
    step: &StepId,
    message: Option<&MessageId>,
    calls: &[RequestedCall],
    at: Time,
) {
    let Some((model, output)) = take_output(state, step) else {
        return;
    };
    let mut parts = parts_of(output);
    parts.extend(calls.iter().map(call_part));
    state.calls.extend(calls.iter().map(|call| call.id.clone()));
    let phase = match calls {
        [] => Phase::Answered,
        calls => Phase::Acting(calls.iter().map(|call| new_call(call, false)).collect()),
    };
    change_open_turn(state, |open| open.phase = phase);
    if let Some(message) = message.and_then(|id| new_message(state, id, Role::Assistant, parts, at))
    {
        state.add_message(Message { by: Some(model), ..message });
    }
}

/// Stores the model and the sealed parts of the newest answer.
fn set_author(state: &mut SessionData, by: Option<&ModelRef>, sealed: &[Sealed]) {
    change_last_message(state, |last| {
        if let Some(by) = by {
            last.by = Some(by.clone());
        }
        last.sealed = sealed.to_vec();
    });
}

fn step_interrupted(state: &mut SessionData, step: &StepId, message: Option<&MessageId>, at: Time) {
    let Some((model, output)) = take_output(state, step) else {
        return;
    };
    let parts = parts_of(output);
    change_open_turn(state, |open| open.phase = Phase::Acting(Vec::new()));
    if let Some(message) = message.and_then(|id| new_message(state, id, Role::Assistant, parts, at))
    {
        state.add_message(Message { by: Some(model), interrupted: true, ..message });
    }
}

fn turn_over(
    state: &mut SessionData,
    id: &TurnId,
    status: TurnStatus,
    error: Option<&String>,
    at: Time,
) {
    state.turns.change(id, |turn| {
        turn.status = status;
        turn.completed = Some(at);
        turn.error = error.cloned();
    });
    // A turn that had not started does not affect the session's status.
    if state.open.as_ref().is_none_or(|open| open.id != *id) {
        return;
    }
    state.open = None;
    state.asked.clear();
    state.error = error.cloned();
    state.status = match status {
        TurnStatus::Failed => Status::Failed,
        TurnStatus::Cancelled => Status::Cancelled,
        TurnStatus::Pending
        | TurnStatus::Running
        | TurnStatus::WaitingApproval
        | TurnStatus::Succeeded => Status::Active,
    };
}

/// Updates the three places that record whether an approval is pending; they change together.
fn update_waiting(state: &mut SessionData, at: Time) {
    let Some(open) = &mut state.open else { return };
    let waits = open.waits_for_approval() || !open.questions.is_empty();
    if waits || open.held || open.waits_for_client() || !state.asked.is_empty() {
        open.clock.pause(at);
    } else {
        open.clock.resume(at);
    }
    let (status, of_turn) = if waits {
        (Status::WaitingApproval, TurnStatus::WaitingApproval)
    } else {
        (Status::Active, TurnStatus::Running)
    };
    state.status = status;
    state.turns.change(&open.id, |turn| turn.status = of_turn);
}

/// Counts a model call of the conversation: its input tokens are the length of the conversation.
fn count_model_usage(state: &mut SessionData, usage: Usage) {
    state.compaction.tokens = usage.total();
    add_usage(state, usage);
}

fn add_usage(state: &mut SessionData, usage: Usage) {
    state.usage = state.usage.plus(usage);
    change_open_turn(state, |open| open.usage = open.usage.plus(usage));
}

/// A message of the open turn, not added yet.
fn new_message(
    state: &SessionData,
    id: &MessageId,
    role: Role,
    parts: Vec<Part>,
    at: Time,
) -> Option<Message> {
    let open = state.open.as_ref()?;
    Some(Message {
        id: id.clone(),
        role,
        parts,
        wording: None,
        at,
        turn: open.id.clone(),
        attempt: open.attempt,
        call: None,
        ending: None,
        interrupted: false,
        by: None,
        sealed: Vec::new(),
        files: Vec::new(),
    })
}

/// Changes the last added message.
fn change_last_message(state: &mut SessionData, change: impl FnOnce(&mut Message)) {
    if let Some(last) = state.messages.last_mut() {
        change(Arc::make_mut(last));
    }
}

fn change_open_turn(state: &mut SessionData, change: impl FnOnce(&mut OpenTurn)) {
    if let Some(open) = &mut state.open {
        change(open);
    }
}

fn change_open_step(state: &mut SessionData, step: &StepId, change: impl FnOnce(&mut OpenStep)) {
    change_open_turn(state, |open| {
        if let Phase::Thinking(open) = &mut open.phase
            && open.id == *step
        {
            change(open);
        }
    });
}

fn take_output(state: &mut SessionData, step: &StepId) -> Option<(ModelRef, Vec<Segment>)> {
    let mut taken = None;
    change_open_step(state, step, |open| {
        taken = Some((open.model.clone(), std::mem::take(&mut open.output)));
    });
    taken
}

fn parts_of(output: Vec<Segment>) -> Vec<Part> {
    let part = |segment: Segment| match segment.channel {
        Channel::Text => Part::Text(segment.text),
        Channel::Thought => Part::Thought(segment.text),
    };
    output.into_iter().map(part).collect()
}
