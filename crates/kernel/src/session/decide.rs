//! Decides which events a command leads to. Late reports lead to none.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::approval_id::{ApprovalId, is_ambiguous};
use crate::change::{LISTED_CHANGES_LIMIT, changed_paths, net_changes};
use crate::command::{Approve, Command};
use crate::context::Section;
use crate::event::{ApprovalDecision, Event, FailureCode, NewSession, RequestedCall, StopCause};
use crate::id::{CallId, MessageId, StepId, TurnId};
use crate::message::{Attachment, MediaKind, Message, Part, Role};
use crate::model::{self, Channel, Failure, FailureKind, ModelRef, RawToolCall, Usage};
use crate::nesting::{self, LEVELS_LIMIT, depth};
use crate::pictures;
use crate::prompt::parse_summary;
use crate::session::attach::attach;
use crate::session::client_tools;
use crate::session::import_messages::import_messages;
use crate::session::recover::recover;
use crate::session::state::State;
use crate::session::supersede::supersede;
use crate::session::turn::{Call, CallPhase, OpenStep, OpenTurn, TurnStatus};
use crate::session::{
    Refusal, add_message, advance, call_decision, claims, compaction, questions, subagents,
};
use crate::stamp::Stamp;
use crate::tool::{Assessment, Outcome};

/// Length of the closing summary, in characters.
const CLOSING_SUMMARY_CHARS: usize = 500;

/// Decides which events a command leads to. Fails with a [`Refusal`] if the command is not
/// acceptable in this state.
pub fn decide(state: &State, command: Command, stamp: &Stamp) -> Result<Vec<Event>, Refusal> {
    if let Command::Create(origin) = command {
        return on_create(state, origin);
    }
    if state.created.is_none() {
        return Err(Refusal::NotBegun(state.id.clone()));
    }
    Ok(match command {
        Command::Create(_) => unreachable!("handled above"),
        Command::SetLabel { key, value } => on_set_label(state, key, value),
        Command::SwitchModel(model) => on_switch_model(state, model)?,
        Command::SetSystemPrompt { system_prompt } => on_set_system_prompt(state, system_prompt),
        Command::SetWorkspace { workspace } => on_set_workspace(state, workspace)?,
        Command::SetTools(toolset) => client_tools::set_tools(state, toolset)?,
        Command::Attach(upload) => attach(state, upload, stamp)?,
        Command::AddMessage(mut say) => {
            say.options.more.iter_mut().for_each(|more| nesting::cut(&mut more.front_end_data));
            add_message::on_add_message(state, *say, stamp)?
        }
        Command::StartTurn { turn } => on_start_turn(state, turn)?,
        Command::Approve(approve) => on_approve(state, approve, stamp)?,
        Command::ClaimCalls { calls, by, came_back } => {
            claims::claim(state, calls, (&by, came_back), stamp)?
        }
        Command::ReturnResult { call, by, mut outcome } => {
            nesting::cut(&mut outcome.front_end_data);
            claims::return_result(state, call, &by, outcome, stamp)?
        }
        Command::Disconnect { client } => claims::disconnected(state, &client, stamp),
        Command::Cancel { reason } => on_cancel(state, reason),
        Command::CancelTurn { turn, reason } => on_cancel_turn(state, turn, reason)?,
        Command::ImportMessages { messages, instead } => {
            import_messages(state, messages, instead, stamp)?
        }
        Command::Supersede { from } => {
            require_idle(state)?;
            supersede(state, &from)?
        }
        Command::Revert { turn } => on_revert(state, turn)?,
        Command::Reapply { turn } => on_reapply(state, turn)?,
        Command::RevertFinished { turn, result } => on_revert_finished(state, turn, result),
        Command::Compact => on_compact(state)?,
        Command::CompactWith { summary } => on_compact_with(state, summary)?,
        Command::Close { reason } => on_close(state, reason)?,
        Command::ModelOutput { step, offset, channel, text, pieces } => {
            on_model_output(state, step, offset, (channel, text, pieces))
        }
        Command::ModelRetrying { step, attempt, wait_ms, reason } => {
            match open_step(state, &step) {
                Some((open, _)) => {
                    let turn = open.id.clone();
                    vec![Event::ModelRetrying { turn, step, attempt, wait_ms, reason }]
                }
                None => Vec::new(),
            }
        }
        Command::ModelCompleted { step, answer } => on_model_completed(state, step, answer, stamp),
        Command::ModelFailed { step, failure } => on_model_failed(state, step, failure, stamp),
        Command::ContextGathered { turn, sections } => on_context_gathered(state, turn, sections),
        Command::Assessed { call, assessment } => on_assessed(state, call, *assessment, stamp),
        Command::Reviewed { call, answer, comment, usage } => {
            on_reviewed(state, call, (answer, comment), usage)
        }
        Command::SpawnSubagent { call, session, task } => {
            subagents::spawn_subagent(state, &call, (session, task), stamp)
        }
        Command::Subagent { call, session, news } => {
            subagents::on_subagent_update(state, call, session, news)
        }
        Command::AskUser { call, question } => questions::ask(state, &call, *question, stamp),
        Command::WithdrawQuestion { question } => questions::withdraw(state, &question),
        Command::CallFinished { call, outcome } => on_call_finished(state, call, outcome, stamp),
        Command::SummaryWritten { upto, summary, usage } => {
            on_summary_written(state, upto, summary, usage)
        }
        Command::SummaryFailed { reason } => match state.compaction.pending {
            Some(_) => vec![Event::CompactionFailed { reason }],
            None => Vec::new(),
        },
        Command::MemorySaved { upto, result } => on_memory_saved(state, upto, result),
        Command::Recover { interrupted } => recover(state, interrupted, stamp),
        Command::Wake => Vec::new(),
    })
}

fn on_create(state: &State, origin: NewSession) -> Result<Vec<Event>, Refusal> {
    if state.created.is_some() {
        return Err(Refusal::Exists(state.id.clone()));
    }
    if let Some(model) = &origin.model {
        require_known_model(state, model)?;
    }
    let (toolset, origin) = (origin.toolset.clone(), NewSession { toolset: None, ..origin });
    let tools = match toolset {
        Some(toolset) => client_tools::set_tools(state, *toolset)?,
        None => Vec::new(),
    };
    Ok([Event::SessionCreated(origin)].into_iter().chain(tools).collect())
}

fn on_set_label(state: &State, key: String, value: Option<String>) -> Vec<Event> {
    if state.labels.get(&key) == value.as_ref() {
        Vec::new()
    } else {
        vec![Event::Labelled { key, value }]
    }
}

fn on_switch_model(state: &State, model: ModelRef) -> Result<Vec<Event>, Refusal> {
    require_known_model(state, &model)?;
    if state.model.as_ref() == Some(&model) {
        Ok(Vec::new())
    } else {
        Ok(vec![Event::ModelSwitched { model }])
    }
}

fn on_set_system_prompt(state: &State, system_prompt: Option<String>) -> Vec<Event> {
    if state.system_prompt == system_prompt {
        Vec::new()
    } else {
        vec![Event::Instructed { system_prompt }]
    }
}

fn on_set_workspace(state: &State, workspace: PathBuf) -> Result<Vec<Event>, Refusal> {
    if state.workspace == workspace {
        return Ok(Vec::new());
    }
    require_idle(state)?;
    Ok(vec![Event::Moved { workspace }])
}

fn on_start_turn(state: &State, id: TurnId) -> Result<Vec<Event>, Refusal> {
    let Some(turn) = state.turn(&id) else {
        return Err(Refusal::UnknownTurn(id));
    };
    if let Some(open) = &state.open
        && open.id == id
        && open.held
    {
        return Ok(vec![Event::TurnReleased { turn: id }]);
    }
    require_idle(state)?;
    require_known_model(state, turn.options.model.as_ref().unwrap_or(state.current_model()))?;
    match turn.status {
        // A replaced turn is not started again.
        _ if turn.superseded => Err(Refusal::UnknownTurn(id)),
        TurnStatus::Pending | TurnStatus::Failed | TurnStatus::Cancelled => {
            Ok(add_message::start_turn(state, turn))
        }
        TurnStatus::Succeeded => Err(Refusal::Succeeded(id)),
        TurnStatus::Running | TurnStatus::WaitingApproval => Err(Refusal::Busy(state.id.clone())),
    }
}

fn on_approve(state: &State, approve: Approve, stamp: &Stamp) -> Result<Vec<Event>, Refusal> {
    match approve.question.clone() {
        ApprovalId::Call(call) => on_approve_call(state, call, approve, stamp),
        ApprovalId::Turn(turn) => {
            let held = state.open.as_ref().is_some_and(|open| open.held && open.id == turn);
            if !held {
                return Err(Refusal::NothingPending(state.id.clone()));
            }
            Ok(match approve.answer {
                ApprovalDecision::Allow => vec![Event::TurnReleased { turn }],
                ApprovalDecision::Deny => on_cancel(state, approve.reason),
            })
        }
        ApprovalId::Question(id) => questions::answer(state, &id, approve, stamp),
    }
}

fn on_approve_call(
    state: &State,
    call: CallId,
    approve: Approve,
    stamp: &Stamp,
) -> Result<Vec<Event>, Refusal> {
    let waiting = state.open.as_ref().filter(|open| open.waits_for_approval());
    let Some(open) = waiting else { return Err(Refusal::NothingPending(state.id.clone())) };
    // From `expires` on the request counts as denied, even before the timer fires.
    let asked = |call: &&Call| match call.phase {
        CallPhase::Asked { expires, .. } => expires.is_none_or(|expires| stamp.at < expires),
        CallPhase::Requested
        | CallPhase::InReview { .. }
        | CallPhase::Reviewed { .. }
        | CallPhase::Allowed
        | CallPhase::Denied { .. }
        | CallPhase::Started(..)
        | CallPhase::Done(_) => false,
    };
    let Some(asked) = open.call(&call).filter(asked) else {
        return Err(Refusal::NotPending(call));
    };
    let Approve { answer, reason, by, remember, turn, .. } = approve;
    match turn {
        Some(turn) if turn != open.id => Err(Refusal::WrongTurn { call, turn }),
        Some(_) | None => {
            let (turn, tool) = (open.id.clone(), asked.request.tool.clone());
            Ok(vec![Event::ApprovalAnswered { turn, call, tool, answer, reason, by, remember }])
        }
    }
}

/// Cancelling twice, or nothing, is not an error: the client could not have known.
fn on_cancel(state: &State, reason: Option<String>) -> Vec<Event> {
    match &state.open {
        Some(OpenTurn { id, stopping: None, .. }) => {
            vec![Event::StopRequested { turn: id.clone(), cause: StopCause::Cancelled { reason } }]
        }
        Some(_) => Vec::new(),
        None if state.compaction.pending.is_some() => {
            vec![Event::CompactionFailed { reason: "canceled".into() }]
        }
        None => Vec::new(),
    }
}

/// Cancelling a turn that has ended is not an error either.
fn on_cancel_turn(
    state: &State,
    id: TurnId,
    reason: Option<String>,
) -> Result<Vec<Event>, Refusal> {
    let Some(turn) = state.turn(&id) else { return Err(Refusal::UnknownTurn(id)) };
    Ok(match turn.status {
        TurnStatus::Pending => {
            vec![Event::TurnCancelled { turn: id, reason, usage: Usage::default() }]
        }
        TurnStatus::Running | TurnStatus::WaitingApproval => on_cancel(state, reason),
        TurnStatus::Succeeded | TurnStatus::Failed | TurnStatus::Cancelled => Vec::new(),
    })
}

fn on_compact(state: &State) -> Result<Vec<Event>, Refusal> {
    require_idle(state)?;
    let upto = compaction::past_but_last_turns(state).ok_or(Refusal::NothingToCompact)?;
    let (tokens, overflow) = (state.compaction.tokens, false);
    Ok(vec![Event::CompactionRequested { upto, tokens, overflow }])
}

/// Uses a person's summary as it is, without extracting facts.
fn on_compact_with(state: &State, summary: String) -> Result<Vec<Event>, Refusal> {
    if summary.trim().is_empty() {
        return Err(Refusal::EmptyMessage);
    }
    let mut events = on_compact(state)?;
    let upto = compaction::past_but_last_turns(state).ok_or(Refusal::NothingToCompact)?;
    let parsed = (summary, Vec::new());
    events.push(compaction::compacted_event(state, upto, parsed, Usage::default()));
    Ok(events)
}

fn on_close(state: &State, reason: Option<String>) -> Result<Vec<Event>, Refusal> {
    require_idle(state)?;
    if state.status == crate::Status::Completed {
        return Ok(Vec::new());
    }
    Ok(vec![Event::SessionClosed { reason, summary: closing_summary(state) }])
}

/// The beginning of the last model message.
fn closing_summary(state: &State) -> Option<String> {
    let spoken = |message: &&Arc<Message>| message.role == Role::Assistant && !message.interrupted;
    let last = state.messages.iter().rev().find(spoken)?.text();
    let short: String = last.trim().chars().take(CLOSING_SUMMARY_CHARS).collect();
    (!short.is_empty()).then_some(short)
}

fn on_model_output(
    state: &State,
    step: StepId,
    offset: u64,
    output: (Channel, String, Vec<u32>),
) -> Vec<Event> {
    let (channel, text, pieces) = output;
    let written = open_step(state, &step).filter(|(_, at)| at.written == offset);
    let Some((open, _)) = written.filter(|_| !text.is_empty()) else { return Vec::new() };
    let turn = open.id.clone();
    vec![Event::TextAppended { turn, step, offset, channel, text, pieces }]
}

fn on_model_completed(
    state: &State,
    step: StepId,
    answer: model::ModelResponse,
    stamp: &Stamp,
) -> Vec<Event> {
    let Some((open, OpenStep { written, .. })) = open_step(state, &step) else {
        return Vec::new();
    };
    let model::ModelResponse { finish, calls, usage, mut sealed, by } = answer;
    sealed.retain(|sealed| depth(&sealed.content) <= LEVELS_LIMIT);
    let mut taken = HashSet::new();
    let named = calls.into_iter().map(|asked| name_call(state, asked, &mut taken, stamp));
    let named: Vec<RequestedCall> = named.collect();
    let message = (*written > 0 || !named.is_empty()).then(|| stamp.id());
    let turn = open.id.clone();
    vec![Event::ModelCompleted { turn, step, message, finish, calls: named, usage, sealed, by }]
}

/// Keeps the model's id for a call if it is usable. Approval requests of subagents are listed
/// in the sessions above them, where ids of several models would collide: their calls get fresh
/// ids.
fn name_call(
    state: &State,
    asked: RawToolCall,
    taken: &mut HashSet<CallId>,
    stamp: &Stamp,
) -> RequestedCall {
    let known = |id: &CallId| state.calls.contains(id) || taken.contains(id);
    let free = |id: &CallId| state.depth == 0 && !known(id) && !is_ambiguous(id);
    let id = CallId::parse(&asked.id).filter(free).unwrap_or_else(|| stamp.id());
    taken.insert(id.clone());
    let written = match asked.arguments.trim() {
        "" => "{}",
        written => written,
    };
    match serde_json::from_str(written) {
        Ok(input) if depth(&input) > LEVELS_LIMIT => RequestedCall {
            id,
            tool: asked.tool,
            input: asked.arguments.into(),
            malformed: Some("the arguments are nested too deeply".into()),
        },
        Ok(input) => RequestedCall { id, tool: asked.tool, input, malformed: None },
        Err(error) => RequestedCall {
            id,
            tool: asked.tool,
            input: asked.arguments.into(),
            malformed: Some(format!("the arguments are not valid JSON: {error}")),
        },
    }
}

fn on_model_failed(state: &State, step: StepId, failure: Failure, stamp: &Stamp) -> Vec<Event> {
    let Some((open, step)) = open_step(state, &step) else { return Vec::new() };
    let interrupted = |window| open.interrupted(step, failure.message.clone(), window, stamp);
    let overflow = failure.kind == FailureKind::ContextOverflow;
    if let Some(upto) = compaction::largest_range(state).filter(|_| overflow) {
        let tokens = compaction::estimate_prompt_tokens(state);
        return vec![interrupted(None), Event::CompactionRequested { upto, tokens, overflow }];
    }
    // Only the results of one step are left to shorten: the next step shows less of them.
    if let Some(window) = compaction::smaller_window(state).filter(|_| overflow) {
        return vec![interrupted(Some(window))];
    }
    let (interrupted, Failure { kind, message }) = (interrupted(None), failure);
    let cause = StopCause::Failed { code: FailureCode::Model(kind), message };
    vec![interrupted, Event::StopRequested { turn: open.id.clone(), cause }]
}

fn on_context_gathered(state: &State, turn: TurnId, found: Vec<Section>) -> Vec<Event> {
    let open = state.open.as_ref().filter(|open| open.id == turn);
    if !open.is_some_and(|open| advance::needs_context(state, open)) {
        return Vec::new();
    }
    let sections = state.context.diff(found);
    let bytes = sections.iter().map(|section| section.text.len()).sum::<usize>();
    vec![Event::ContextGathered { turn, sections, tokens: bytes.div_ceil(4) as u64 }]
}

fn on_reviewed(
    state: &State,
    id: CallId,
    (answer, comment): (Option<ApprovalDecision>, String),
    usage: Usage,
) -> Vec<Event> {
    let in_review = |call: &Call| matches!(call.phase, CallPhase::InReview { .. });
    let Some((open, call)) = open_call(state, &id).filter(|(_, call)| in_review(call)) else {
        return Vec::new();
    };
    let (turn, tool) = (open.id.clone(), call.request.tool.clone());
    vec![Event::Reviewed { turn, call: id, tool, answer, comment, usage }]
}

fn on_assessed(state: &State, id: CallId, assessment: Assessment, stamp: &Stamp) -> Vec<Event> {
    let requested = |call: &Call| call.phase == CallPhase::Requested;
    match open_call(state, &id).filter(|(_, call)| requested(call)) {
        Some((open, call)) => call_decision::assessed(state, open, call, assessment, stamp),
        None => Vec::new(),
    }
}

fn on_revert(state: &State, id: TurnId) -> Result<Vec<Event>, Refusal> {
    require_idle(state)?;
    match state.turn(&id) {
        None => Err(Refusal::UnknownTurn(id)),
        Some(turn) if turn.reverted => Err(Refusal::AlreadyReverted(id)),
        Some(turn) if turn.has_no_changes() => Err(Refusal::NothingToRevert(id)),
        Some(_) => Ok(vec![Event::RevertRequested { turn: id }]),
    }
}

fn on_reapply(state: &State, id: TurnId) -> Result<Vec<Event>, Refusal> {
    require_idle(state)?;
    match state.turn(&id) {
        None => Err(Refusal::UnknownTurn(id)),
        Some(turn) if !turn.reverted => Err(Refusal::NotReverted(id)),
        Some(_) => Ok(vec![Event::RevertRequested { turn: id }]),
    }
}

fn on_revert_finished(state: &State, id: TurnId, result: Result<(), String>) -> Vec<Event> {
    let Some(turn) = state.turn(&id).filter(|_| state.reverting.as_ref() == Some(&id)) else {
        return Vec::new();
    };
    let reverted = || {
        let changes = net_changes(&turn.changes);
        let files = changed_paths(&changes)
            .into_iter()
            .take(LISTED_CHANGES_LIMIT)
            .map(str::to_owned)
            .collect();
        let unlisted: u64 = turn.more_changes.iter().map(|(_, more)| more.count).sum();
        let more = changes.len().saturating_sub(LISTED_CHANGES_LIMIT) as u64 + unlisted;
        Event::Reverted { turn: id.clone(), files, more, reapplied: turn.reverted }
    };
    vec![match result {
        Ok(()) => reverted(),
        Err(reason) => Event::RevertFailed { turn: id, reason },
    }]
}

fn on_summary_written(state: &State, upto: MessageId, words: String, usage: Usage) -> Vec<Event> {
    if state.compaction.pending.as_ref() != Some(&upto) {
        return Vec::new();
    }
    let parsed = if state.rules.save_memory { parse_summary(&words) } else { (words, Vec::new()) };
    vec![compaction::compacted_event(state, upto, parsed, usage)]
}

fn on_memory_saved(state: &State, upto: MessageId, result: Result<String, String>) -> Vec<Event> {
    if state.saving.iter().all(|saving| saving.upto != upto) {
        return Vec::new();
    }
    vec![match result {
        Ok(path) => Event::MemorySaved { upto, path },
        Err(reason) => Event::MemoryNotSaved { upto, reason },
    }]
}

fn on_call_finished(state: &State, id: CallId, outcome: Outcome, stamp: &Stamp) -> Vec<Event> {
    let runs = |call: &Call| matches!(call.phase, CallPhase::Started(..));
    match open_call(state, &id).filter(|(_, call)| runs(call)) {
        Some((open, call)) => vec![open.completed(call, outcome, stamp)],
        None => Vec::new(),
    }
}

pub(super) fn require_idle(state: &State) -> Result<(), Refusal> {
    if state.busy() { Err(Refusal::Busy(state.id.clone())) } else { Ok(()) }
}

pub(super) fn require_known_model(state: &State, model: &ModelRef) -> Result<(), Refusal> {
    match state.profile(model) {
        Some(_) => Ok(()),
        None => Err(Refusal::UnknownModel(model.clone())),
    }
}

pub(super) fn require_supported_part(
    state: &State,
    files: &[Attachment],
    model: &ModelRef,
    part: &Part,
) -> Result<(), Refusal> {
    let Part::Media { kind, name, mime } = part else {
        return Ok(());
    };
    let brought = files.iter().find(|file| file.name == *name);
    let Some(file) = brought.or_else(|| state.attachment(name)) else {
        return Err(Refusal::UnknownAttachment(name.clone()));
    };
    let mime = mime.as_deref().unwrap_or(&file.mime);
    let read = *kind == MediaKind::Image && pictures::can_read_pictures(state, model);
    match state.profile(model) {
        Some(profile) if !read && !pictures::accepts(profile, *kind, mime) => {
            Err(Refusal::UnsupportedInput { model: model.clone(), kind: *kind })
        }
        Some(_) | None => Ok(()),
    }
}

/// The open model call of that id, and its turn.
fn open_step<'a>(state: &'a State, id: &StepId) -> Option<(&'a OpenTurn, &'a OpenStep)> {
    let open = state.open.as_ref()?;
    Some((open, open.step().filter(|step| step.id == *id)?))
}

fn open_call<'a>(state: &'a State, id: &CallId) -> Option<(&'a OpenTurn, &'a Call)> {
    let open = state.open.as_ref()?;
    Some((open, open.call(id)?))
}
