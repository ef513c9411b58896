//! Decides whether a call runs: by policy, assessment, review and remembered decisions.

use crate::event::{
    ApprovalDecision, ApprovalMode, DecidedBy, Event, RememberScope, RequestedCall, ToolUse,
};
use crate::policy::{ReviewMode, Verdict};
use crate::session::client_tools::client_call_info;
use crate::session::state::{CallMatcher, State};
use crate::session::turn::{Call, OpenTurn};
use crate::stamp::Stamp;
use crate::tool::{
    Assessment, Ending, Outcome, PERMISSIONS_ARGUMENT, Placement, Risk, ToolKind, ToolSpec,
};

/// Decides a call that was not assessed; `None` if it must be assessed first.
pub(super) fn requested(
    state: &State,
    open: &OpenTurn,
    call: &Call,
    stamp: &Stamp,
) -> Option<Vec<Event>> {
    let request = &call.request;
    let Some(tool) = state.tool(&request.tool) else {
        return Some(vec![unknown_tool(open, call, stamp)]);
    };
    if let Some(why) = &request.malformed {
        return Some(vec![open.completed(call, Outcome::failure(why.clone()), stamp)]);
    }
    if open.options.tools == ToolUse::Withheld && !call.verifies {
        return Some(vec![denied_call(open, call, "tools are off for this turn".into(), stamp)]);
    }
    if !call.verifies && open.ran.repeats(&request.tool, &request.input) {
        let why = "duplicate tool call: no new info";
        return Some(vec![open.completed(call, Outcome::ended(Ending::Skipped, why), stamp)]);
    }
    match verdict(state, (open, call), tool, None) {
        Verdict::Allow => Some(vec![call_started(state, (open, call), tool, stamp)]),
        Verdict::Refuse(why) => Some(vec![denied_call(open, call, why, stamp)]),
        // `next` requests an assessment.
        Verdict::Ask | Verdict::Assess => None,
    }
}

/// The decision of the policy and the turn's options on a call; the assessment is given once
/// there is one.
pub(super) fn verdict(
    state: &State,
    (open, call): (&OpenTurn, &Call),
    tool: &ToolSpec,
    assessment: Option<&Assessment>,
) -> Verdict {
    let subject = assessment.map(|assessment| &assessment.subject);
    let verdict = state.verdict(tool, subject);
    let verdict = match (open.options.asking, &verdict) {
        (ApprovalMode::Strict, Verdict::Allow) if tool.kind != ToolKind::Read => Verdict::Ask,
        (ApprovalMode::Waived, Verdict::Ask) if !state.rules.requires_approval(tool, subject) => {
            match assessment {
                None => Verdict::Assess,
                Some(assessment) if assessment.risk < Risk::Critical => Verdict::Allow,
                Some(_) => Verdict::Ask,
            }
        }
        (
            ApprovalMode::Policy
            | ApprovalMode::Strict
            | ApprovalMode::Waived
            | ApprovalMode::Unattended,
            _,
        ) => verdict,
    };
    // Even if the call is allowed otherwise: only a person may extend the sandbox.
    match (verdict, subject) {
        (Verdict::Allow, None) if asks_for_permissions(tool, &call.request) => Verdict::Assess,
        (Verdict::Allow, Some(subject)) if !subject.permissions.is_empty() => Verdict::Ask,
        (verdict, _) => verdict,
    }
}

fn asks_for_permissions(tool: &ToolSpec, request: &RequestedCall) -> bool {
    let asks = request.input.get(PERMISSIONS_ARGUMENT).is_some_and(|asked| !asked.is_null());
    tool.placement == Placement::Daemon && asks
}

/// Decides an assessed call.
pub(super) fn assessed(
    state: &State,
    open: &OpenTurn,
    call: &Call,
    assessment: Assessment,
    stamp: &Stamp,
) -> Vec<Event> {
    let Some(tool) = state.tool(&call.request.tool) else {
        return vec![unknown_tool(open, call, stamp)];
    };
    // Not started: what the assessment is based on could change before the call runs.
    if let Some(outcome) = assessment.settled {
        return vec![open.completed(call, outcome, stamp)];
    }
    let verdict = verdict(state, (open, call), tool, Some(&assessment));
    let reviewed = state.rules.review == ReviewMode::Auto && tool.kind == ToolKind::Write;
    vec![match verdict {
        Verdict::Refuse(why) => denied_call(open, call, why, stamp),
        Verdict::Allow | Verdict::Ask | Verdict::Assess if reviewed => Event::ReviewRequested {
            turn: open.id.clone(),
            call: call.id().clone(),
            tool: call.request.tool.clone(),
            assessment,
        },
        Verdict::Allow => call_started(state, (open, call), tool, stamp),
        Verdict::Ask | Verdict::Assess => request_approval(state, open, call, assessment, stamp),
    }]
}

/// Decides a call whose change was reviewed.
pub(super) fn reviewed(
    state: &State,
    open: &OpenTurn,
    call: &Call,
    review: (&Assessment, Option<ApprovalDecision>, &str),
    stamp: &Stamp,
) -> Event {
    let (assessment, answer, comment) = review;
    let Some(tool) = state.tool(&call.request.tool) else {
        return unknown_tool(open, call, stamp);
    };
    let verdict = verdict(state, (open, call), tool, Some(assessment));
    match (answer, verdict) {
        (_, Verdict::Refuse(why)) => denied_call(open, call, why, stamp),
        (Some(ApprovalDecision::Deny), _) => {
            denied_call(open, call, format!("review: {comment}"), stamp)
        }
        (Some(ApprovalDecision::Allow), Verdict::Allow) => {
            call_started(state, (open, call), tool, stamp)
        }
        // Without a review, a person decides.
        (Some(ApprovalDecision::Allow), Verdict::Ask | Verdict::Assess)
        | (None, Verdict::Allow | Verdict::Ask | Verdict::Assess) => {
            let mut assessment = assessment.clone();
            assessment.reasons.push(format!("review: {comment}"));
            request_approval(state, open, call, assessment, stamp)
        }
    }
}

/// Starts an approved call.
pub(super) fn start_call(state: &State, open: &OpenTurn, call: &Call, stamp: &Stamp) -> Event {
    match state.tool(&call.request.tool) {
        Some(tool) => call_started(state, (open, call), tool, stamp),
        None => unknown_tool(open, call, stamp),
    }
}

/// Why a call that needs approval is denied in an unattended turn.
const UNATTENDED_REASON: &str = "this call needs approval, and nobody can be asked for it here";

/// Requests an approval, unless there is a remembered decision or the turn is unattended.
fn request_approval(
    state: &State,
    open: &OpenTurn,
    call: &Call,
    assessment: Assessment,
    stamp: &Stamp,
) -> Event {
    let answered = remembered_decision(state, &call.request, &assessment);
    if answered.is_none() && open.options.asking == ApprovalMode::Unattended {
        return denied_call(open, call, UNATTENDED_REASON.into(), stamp);
    }
    let RequestedCall { id, tool, input, .. } = call.request.clone();
    let (turn, call) = (open.id.clone(), id);
    if let Some(answer) = answered {
        let reason = Some("remembered from an earlier answer".into());
        let (by, remember) = (DecidedBy::Memory, RememberScope::Once);
        return Event::ApprovalAnswered { turn, call, tool, answer, reason, by, remember };
    }
    let patience = open.options.approval_timeout(state.rules.approval.expires);
    let expires = patience.map(|span| stamp.at.after(span));
    Event::ApprovalRequested { turn, call, tool, input, assessment, expires }
}

/// The newest remembered answer that applies to a call. An approval of similar calls does not apply
/// to an opaque call or one of critical risk.
fn remembered_decision(
    state: &State,
    request: &RequestedCall,
    assessment: &Assessment,
) -> Option<ApprovalDecision> {
    let counts = |calls: &CallMatcher, answer: ApprovalDecision| match calls {
        CallMatcher::Same(arguments) => *arguments == request.input,
        CallMatcher::Similar(common) => {
            let subject = &assessment.subject;
            let grave = subject.opaque || assessment.risk == Risk::Critical;
            subject.similar.as_ref() == Some(common) && (answer == ApprovalDecision::Deny || !grave)
        }
    };
    let mut of_tool = state.remembered.iter().rev().filter(|old| old.tool == request.tool);
    of_tool.find(|old| counts(&old.calls, old.answer)).map(|old| old.answer)
}

fn unknown_tool(open: &OpenTurn, call: &Call, stamp: &Stamp) -> Event {
    let why = format!("unknown tool: {}", call.request.tool);
    open.completed(call, Outcome::failure(why), stamp)
}

fn denied_call(open: &OpenTurn, call: &Call, why: String, stamp: &Stamp) -> Event {
    open.completed(call, Outcome::ended(Ending::Denied, why), stamp)
}

fn call_started(state: &State, of: (&OpenTurn, &Call), tool: &ToolSpec, stamp: &Stamp) -> Event {
    let (open, call) = of;
    Event::CallStarted {
        turn: open.id.clone(),
        call: call.id().clone(),
        tool: call.request.tool.clone(),
        input: call.request.input.clone(),
        kind: tool.kind,
        placement: tool.placement,
        errand: client_call_info(state, of, tool, stamp),
    }
}
