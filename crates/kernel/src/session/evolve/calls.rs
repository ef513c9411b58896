//! Applies events about calls.

use std::sync::Arc;

use crate::client::Claim;
use crate::event::{ApprovalDecision, Event, RememberScope, RequestedCall};
use crate::id::{CallId, MessageId};
use crate::message::{Message, Part, Role};
use crate::session::SessionData;
use crate::session::questions::OpenQuestion;
use crate::session::state::{CallMatcher, RememberedDecision};
use crate::session::turn::{Call, CallPhase, OpenTurn, Phase};
use crate::time::Time;
use crate::tool::{Ending, Outcome};

use super::{add_usage, change_open_turn, new_message, update_waiting};

/// Applies an event about a call to the state; ignores other events.
pub(super) fn evolve(state: &mut SessionData, event: &Event, at: Time) {
    match event {
        Event::VerificationRequested { call, .. } => verification_requested(state, call),
        Event::ReviewRequested { call, assessment, .. } => {
            set_call_phase(state, call, CallPhase::InReview { assessment: assessment.clone() });
        }
        Event::Reviewed { call, answer, comment, usage, .. } => {
            reviewed(state, call, *answer, comment);
            add_usage(state, *usage);
        }
        Event::ApprovalRequested { call, assessment, expires, .. } => {
            let phase = CallPhase::Asked { assessment: assessment.clone(), expires: *expires };
            set_call_phase(state, call, phase);
            update_waiting(state, at);
        }
        Event::ApprovalAnswered { call, answer, reason, remember, .. } => {
            remember_decision(state, call, *answer, *remember);
            let phase = match answer {
                ApprovalDecision::Allow => CallPhase::Allowed,
                ApprovalDecision::Deny => CallPhase::Denied { reason: reason.clone() },
            };
            set_call_phase(state, call, phase);
            update_waiting(state, at);
        }
        Event::CallStarted { call, kind, placement, errand, .. } => {
            set_call_phase(state, call, CallPhase::Started(*kind, *placement));
            change_open_turn(state, |open| {
                if let (Some(call), Some(errand)) = (open.call_mut(call), errand) {
                    (call.expires, call.front_end) = (errand.expires, errand.front_end.clone());
                }
            });
            update_waiting(state, at);
        }
        Event::QuestionAsked { call, id, question, expires, .. } => {
            let (id, call, question) = (id.clone(), call.clone(), question.clone());
            let asked = OpenQuestion { id, call, question, expires: *expires };
            change_open_turn(state, |open| open.questions.push(asked));
            update_waiting(state, at);
        }
        Event::QuestionAnswered { id, .. } => {
            change_open_turn(state, |open| open.questions.retain(|open| open.id != *id));
            update_waiting(state, at);
        }
        Event::CallClaimed { call, by, .. } => {
            set_claim(state, call, Some(Claim { by: by.clone(), lost_until: None }));
        }
        Event::ClaimHolderLost { call, by, until, .. } => {
            set_claim(state, call, Some(Claim { by: by.clone(), lost_until: Some(*until) }));
        }
        Event::ClaimReleased { call, .. } => set_claim(state, call, None),
        Event::CallCompleted { call, message, outcome, .. } => {
            call_done(state, call, message, outcome, at);
            update_waiting(state, at);
        }
        _ => {}
    }
}

pub(super) fn new_call(request: &RequestedCall, verifies: bool) -> Call {
    Call {
        request: request.clone(),
        phase: CallPhase::Requested,
        verifies,
        expires: None,
        front_end: None,
        claim: None,
    }
}

pub(super) fn call_part(call: &RequestedCall) -> Part {
    Part::Call { call: call.id.clone(), tool: call.tool.clone(), input: call.input.clone() }
}

/// Policy requested the verification, but models expect every call in a response before its result:
/// the call is added to the model's last message.
fn verification_requested(state: &mut SessionData, call: &RequestedCall) {
    state.calls.insert(call.id.clone());
    let Some(open) = &mut state.open else { return };
    open.phase = Phase::Acting(vec![new_call(call, true)]);
    let turn = open.id.clone();
    let of_turn =
        |m: &&mut Arc<Message>| m.turn == turn && m.role == Role::Assistant && !m.interrupted;
    if let Some(message) = state.messages.iter_mut().rev().find(of_turn) {
        Arc::make_mut(message).parts.push(call_part(call));
    }
}

fn reviewed(state: &mut SessionData, id: &CallId, answer: Option<ApprovalDecision>, comment: &str) {
    change_open_turn(state, |open| {
        if let Some(call) = open.call_mut(id)
            && let CallPhase::InReview { assessment } = &call.phase
        {
            let (assessment, comment) = (assessment.clone(), comment.into());
            call.phase = CallPhase::Reviewed { assessment, answer, comment };
        }
    });
}

/// Stores an answer for later calls. A call without an approval request has no similar calls.
fn remember_decision(
    state: &mut SessionData,
    id: &CallId,
    answer: ApprovalDecision,
    remember: RememberScope,
) {
    let call = state.open.as_ref().and_then(|open| open.call(id));
    let Some(Call { request, phase: CallPhase::Asked { assessment, .. }, .. }) = call else {
        return;
    };
    let similar = assessment.subject.similar.clone();
    let calls = match remember {
        RememberScope::Once => return,
        RememberScope::Similar if similar.is_some() => {
            CallMatcher::Similar(similar.unwrap_or_default())
        }
        RememberScope::Same | RememberScope::Similar => CallMatcher::Same(request.input.clone()),
    };
    let tool = request.tool.clone();
    state.remembered.retain(|old| old.tool != tool || old.calls != calls);
    state.remembered.push(RememberedDecision { tool, calls, answer });
}

fn call_done(
    state: &mut SessionData,
    id: &CallId,
    message: &MessageId,
    outcome: &Outcome,
    at: Time,
) {
    let Some(open) = &mut state.open else { return };
    let Some(call) = open.call_mut(id) else {
        return;
    };
    let ran = match call.phase {
        CallPhase::Started(kind, placement) => Some((kind, placement)),
        CallPhase::Requested
        | CallPhase::InReview { .. }
        | CallPhase::Reviewed { .. }
        | CallPhase::Asked { .. }
        | CallPhase::Allowed
        | CallPhase::Denied { .. }
        | CallPhase::Done(_) => None,
    };
    call.phase = CallPhase::Done(outcome.ending);
    call.claim = None;
    let (request, verifies) = (call.request.clone(), call.verifies);
    if let Some(ran) = ran.filter(|_| !verifies) {
        if open.ran.record_end(ran, &request, outcome) {
            open.repeats = 0;
        }
        open.dirty |= ran.0.changes_workspace();
    }
    if outcome.ending == Ending::Skipped {
        open.repeats += 1;
    }
    if verifies {
        apply_verification(open, outcome.ending);
    }
    state.turns.change(&open.id, |turn| {
        turn.changes.extend_from_slice(&outcome.changes);
        let more = outcome.more_changes.iter().cloned();
        turn.more_changes.extend(more.map(|more| (turn.changes.len(), more)));
        turn.unrecorded.extend_from_slice(&outcome.unrecorded);
    });
    if let Some(message) = new_message(state, message, Role::Tool, outcome.parts.clone(), at) {
        let (call, ending) = (Some(id.clone()), Some(outcome.ending));
        state.add_message(Message { call, ending, files: outcome.artifacts.clone(), ..message });
    }
}

fn apply_verification(open: &mut OpenTurn, ending: Ending) {
    open.dirty = ending == Ending::Interrupted;
    // A verification that had nothing to run has no result.
    if ending != Ending::Idle {
        open.verified = Some(ending == Ending::Succeeded);
    }
    match ending {
        // The model reads the output and continues.
        Ending::Failed => open.failed_checks += 1,
        // An interrupted verification has no result; it is repeated.
        Ending::Interrupted => {}
        // The model cannot fix these.
        Ending::Succeeded
        | Ending::Idle
        | Ending::Denied
        | Ending::Skipped
        | Ending::Cancelled
        | Ending::TimedOut => {
            open.phase = Phase::Answered;
        }
    }
}

fn set_claim(state: &mut SessionData, call: &CallId, claim: Option<Claim>) {
    change_open_turn(state, |open| {
        if let Some(call) = open.call_mut(call).filter(|call| call.with_client()) {
            call.claim = claim;
        }
    });
}

fn set_call_phase(state: &mut SessionData, call: &CallId, phase: CallPhase) {
    change_open_turn(state, |open| {
        if let Some(call) = open.call_mut(call) {
            call.phase = phase;
        }
    });
}
