//! Judges calls: what policy, the tool's own look, the model's review and remembered answers make of
//! one before it may run.

use crate::event::{Answer, Answerer, Asking, Event, Remember, RequestedCall, ToolUse};
use crate::policy::{Review, Verdict};
use crate::session::delegate::errand;
use crate::session::state::{Calls, State};
use crate::session::turn::{Call, OpenTurn};
use crate::stamp::Stamp;
use crate::tool::{Assessment, Ending, Kind, Outcome, PERMISSIONS, Placement, Risk, Spec};

/// What becomes of a call that nobody has looked at; nothing while that has to come first.
pub(super) fn requested(
    state: &State,
    open: &OpenTurn,
    call: &Call,
    stamp: &Stamp,
) -> Option<Vec<Event>> {
    let request = &call.request;
    let Some(tool) = state.tool(&request.tool) else {
        return Some(vec![unknown(open, call, stamp)]);
    };
    if let Some(why) = &request.malformed {
        return Some(vec![open.completed(call, Outcome::failure(why.clone()), stamp)]);
    }
    if open.options.tools == ToolUse::Withheld && !call.verifies {
        return Some(vec![denied(open, call, "tools are off for this turn".into(), stamp)]);
    }
    if !call.verifies && open.ran.repeats(&request.tool, &request.input) {
        let why = "duplicate tool call: no new info";
        return Some(vec![open.completed(call, Outcome::ended(Ending::Skipped, why), stamp)]);
    }
    match verdict(state, (open, call), tool, None) {
        Verdict::Allow => Some(vec![started(state, (open, call), tool, stamp)]),
        Verdict::Refuse(why) => Some(vec![denied(open, call, why, stamp)]),
        // `next` has it looked at.
        Verdict::Ask | Verdict::Look => None,
    }
}

/// What policy and the turn's own options say of a call, of which an assessment is there once it was
/// looked at.
pub(super) fn verdict(
    state: &State,
    (open, call): (&OpenTurn, &Call),
    tool: &Spec,
    assessment: Option<&Assessment>,
) -> Verdict {
    let subject = assessment.map(|assessment| &assessment.subject);
    let verdict = state.verdict(tool, subject);
    let verdict = match (open.options.asking, &verdict) {
        (Asking::Strict, Verdict::Allow) if tool.kind != Kind::Read => Verdict::Ask,
        (Asking::Waived, Verdict::Ask) if !state.rules.insists(tool, subject) => match assessment {
            None => Verdict::Look,
            Some(assessment) if assessment.risk < Risk::Critical => Verdict::Allow,
            Some(_) => Verdict::Ask,
        },
        (Asking::Policy | Asking::Strict | Asking::Waived | Asking::Unattended, _) => verdict,
    };
    // Whatever is allowed otherwise: only a person opens the sandbox.
    match (verdict, subject) {
        (Verdict::Allow, None) if asks_for_permissions(tool, &call.request) => Verdict::Look,
        (Verdict::Allow, Some(subject)) if !subject.permissions.is_empty() => Verdict::Ask,
        (verdict, _) => verdict,
    }
}

fn asks_for_permissions(tool: &Spec, request: &RequestedCall) -> bool {
    let asks = request.input.get(PERMISSIONS).is_some_and(|asked| !asked.is_null());
    tool.placement == Placement::Daemon && asks
}

/// What becomes of a call that was looked at.
pub(super) fn assessed(
    state: &State,
    open: &OpenTurn,
    call: &Call,
    assessment: Assessment,
    stamp: &Stamp,
) -> Vec<Event> {
    let Some(tool) = state.tool(&call.request.tool) else {
        return vec![unknown(open, call, stamp)];
    };
    // Not started: what it was judged by may be another thing by then.
    if let Some(outcome) = assessment.settled {
        return vec![open.completed(call, outcome, stamp)];
    }
    let verdict = verdict(state, (open, call), tool, Some(&assessment));
    let reviewed = state.rules.review == Review::Auto && tool.kind == Kind::Write;
    vec![match verdict {
        Verdict::Refuse(why) => denied(open, call, why, stamp),
        Verdict::Allow | Verdict::Ask | Verdict::Look if reviewed => Event::ReviewRequested {
            turn: open.id.clone(),
            call: call.id().clone(),
            tool: call.request.tool.clone(),
            assessment,
        },
        Verdict::Allow => started(state, (open, call), tool, stamp),
        Verdict::Ask | Verdict::Look => ask(state, open, call, assessment, stamp),
    }]
}

/// What becomes of a call whose change the model has read again.
pub(super) fn reviewed(
    state: &State,
    open: &OpenTurn,
    call: &Call,
    review: (&Assessment, Option<Answer>, &str),
    stamp: &Stamp,
) -> Event {
    let (assessment, answer, comment) = review;
    let Some(tool) = state.tool(&call.request.tool) else {
        return unknown(open, call, stamp);
    };
    let verdict = verdict(state, (open, call), tool, Some(assessment));
    match (answer, verdict) {
        (_, Verdict::Refuse(why)) => denied(open, call, why, stamp),
        (Some(Answer::Deny), _) => denied(open, call, format!("review: {comment}"), stamp),
        (Some(Answer::Allow), Verdict::Allow) => started(state, (open, call), tool, stamp),
        // With nobody to review it, a person is asked.
        (Some(Answer::Allow), Verdict::Ask | Verdict::Look)
        | (None, Verdict::Allow | Verdict::Ask | Verdict::Look) => {
            let mut assessment = assessment.clone();
            assessment.reasons.push(format!("review: {comment}"));
            ask(state, open, call, assessment, stamp)
        }
    }
}

/// Begins a call that may run.
pub(super) fn start(state: &State, open: &OpenTurn, call: &Call, stamp: &Stamp) -> Event {
    match state.tool(&call.request.tool) {
        Some(tool) => started(state, (open, call), tool, stamp),
        None => unknown(open, call, stamp),
    }
}

/// Why a call is denied that needs approval in a turn in which nobody can be asked.
const NOBODY_TO_ASK: &str = "this call needs approval, and nobody can be asked for it here";

/// Asks a person, unless one has answered for calls like this or nobody can be asked.
fn ask(
    state: &State,
    open: &OpenTurn,
    call: &Call,
    assessment: Assessment,
    stamp: &Stamp,
) -> Event {
    let answered = remembered(state, &call.request, &assessment);
    if answered.is_none() && open.options.asking == Asking::Unattended {
        return denied(open, call, NOBODY_TO_ASK.into(), stamp);
    }
    let RequestedCall { id, tool, input, .. } = call.request.clone();
    let (turn, call) = (open.id.clone(), id);
    if let Some(answer) = answered {
        let reason = Some("remembered from an earlier answer".into());
        let (by, remember) = (Answerer::Memory, Remember::Once);
        return Event::ApprovalAnswered { turn, call, tool, answer, reason, by, remember };
    }
    let patience = open.options.patience(state.rules.approval.expires);
    let expires = patience.map(|span| stamp.at.after(span));
    Event::ApprovalRequested { turn, call, tool, input, assessment, expires }
}

/// The newest answer that counts for a call. What should not be done at all is asked about each time,
/// unless it is the very same.
fn remembered(state: &State, request: &RequestedCall, assessment: &Assessment) -> Option<Answer> {
    let counts = |calls: &Calls, answer: Answer| match calls {
        Calls::Same(arguments) => *arguments == request.input,
        Calls::Similar(common) => {
            let subject = &assessment.subject;
            let grave = subject.opaque || assessment.risk == Risk::Critical;
            subject.similar.as_ref() == Some(common) && (answer == Answer::Deny || !grave)
        }
    };
    let mut of_tool = state.remembered.iter().rev().filter(|old| old.tool == request.tool);
    of_tool.find(|old| counts(&old.calls, old.answer)).map(|old| old.answer)
}

fn unknown(open: &OpenTurn, call: &Call, stamp: &Stamp) -> Event {
    let why = format!("unknown tool: {}", call.request.tool);
    open.completed(call, Outcome::failure(why), stamp)
}

fn denied(open: &OpenTurn, call: &Call, why: String, stamp: &Stamp) -> Event {
    open.completed(call, Outcome::ended(Ending::Denied, why), stamp)
}

fn started(state: &State, of: (&OpenTurn, &Call), tool: &Spec, stamp: &Stamp) -> Event {
    let (open, call) = of;
    Event::CallStarted {
        turn: open.id.clone(),
        call: call.id().clone(),
        tool: call.request.tool.clone(),
        input: call.request.input.clone(),
        kind: tool.kind,
        placement: tool.placement,
        errand: errand(state, of, tool, stamp),
    }
}
