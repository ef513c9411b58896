//! The steps that a session takes without a command.
//!
//! Called until nothing follows, so each function does one thing and leaves the rest to the
//! next round. Starting from any prefix of a journal this leads to the same end.

use serde_json::json;

use crate::event::{
    ApprovalDecision, DecidedBy, Event, FailureCode, RememberScope, RequestedCall, StopCause,
};
use crate::policy::OnDeny;
use crate::session::compaction::{self, Reduction};
use crate::session::state::State;
use crate::session::turn::{Call, CallPhase, OpenTurn, Phase};
use crate::session::{add_message, call_decision, claims, client_tools, questions};
use crate::stamp::Stamp;
use crate::tool::{Ending, Outcome, Placement, ToolKind};

/// Why a call is denied whose approval request expired.
pub const APPROVAL_TIMED_OUT: &str = "nobody answered in time";

/// Maximum number of calls of one response that are run.
const STEP_CALLS_LIMIT: usize = 128;

/// The events that follow by themselves.
pub(super) fn advance(state: &State, stamp: &Stamp) -> Vec<Event> {
    let Some(open) = &state.open else {
        return start_queued_turn(state);
    };
    let closed = questions::closed(open, stamp.at);
    if !closed.is_empty() {
        return closed;
    }
    if let Some(cause) = &open.stopping {
        return stop_turn(state, open, cause, stamp);
    }
    if open.held {
        return Vec::new();
    }
    if let Some(deadline) = open.clock.deadline(open.limits(&state.rules).time)
        && stamp.at >= deadline
    {
        return fail_turn(open, FailureCode::TimeLimit, "the turn took too long");
    }
    match &open.phase {
        Phase::Thinking(_) => Vec::new(),
        Phase::Answered => finish_answer(state, open, stamp),
        Phase::Acting(calls) if calls.iter().all(Call::done) => next_step(state, open, stamp),
        Phase::Acting(_) => advance_calls(state, open, stamp),
    }
}

/// Starts the next queued turn.
fn start_queued_turn(state: &State) -> Vec<Event> {
    let Some(turn) = state.turns.next_queued().filter(|_| !state.busy()) else {
        return Vec::new();
    };
    add_message::start_turn(state, turn)
}

/// The unfinished calls that may be processed before earlier ones are done: reads may overtake
/// reads, and a client gets all of its calls at once.
pub(super) fn eligible<'a>(
    state: &'a State,
    calls: &'a [Call],
) -> impl Iterator<Item = (usize, &'a Call)> {
    // True as long as every unfinished call before this one only reads, or runs at the client.
    let (mut none, mut reads, mut delegated, mut either) = (true, true, true, true);
    let open = calls.iter().enumerate().filter(|(_, call)| !call.done());
    open.filter(move |(_, call)| {
        let lane = lane(state, call);
        let may = match lane {
            (true, true) => either,
            (true, false) => reads,
            (false, true) => delegated,
            (false, false) => none,
        };
        none = false;
        reads &= lane.0;
        delegated &= lane.1;
        either &= lane.0 || lane.1;
        may
    })
}

/// Whether a call only reads, and whether a client runs it.
fn lane(state: &State, call: &Call) -> (bool, bool) {
    #[cfg(test)]
    crate::session::tests::scale::visited();
    let of = |kind: ToolKind, placement| (kind.repeatable(), placement == Placement::Client);
    match &call.phase {
        CallPhase::Started(kind, placement) => of(*kind, *placement),
        CallPhase::Requested
        | CallPhase::InReview { .. }
        | CallPhase::Reviewed { .. }
        | CallPhase::Asked { .. }
        | CallPhase::Allowed
        | CallPhase::Denied { .. }
        | CallPhase::Done(_) => match state.tool(&call.request.tool) {
            Some(tool) => of(tool.kind, tool.placement),
            None => (false, false),
        },
    }
}

fn next_step(state: &State, open: &OpenTurn, stamp: &Stamp) -> Vec<Event> {
    let limits = open.limits(&state.rules);
    if state.compaction.pending.is_some() {
        return Vec::new();
    }
    if open.failed_checks >= state.rules.verify.attempts.max(1) {
        return fail_turn(open, FailureCode::Unverified, "verification failed");
    }
    if open.repeats >= limits.repeats {
        return fail_turn(open, FailureCode::Loop, "duplicate tool call: no new info");
    }
    if open.steps >= limits.steps {
        return fail_turn(open, FailureCode::StepLimit, "max turn iterations reached");
    }
    if open.usage.total() >= limits.tokens {
        return fail_turn(open, FailureCode::TokenLimit, "max turn tokens reached");
    }
    // First, because a compaction moves the workspace description to the beginning.
    if needs_context(state, open) {
        return Vec::new();
    }
    let shortened = match compaction::reduction(state) {
        Some(Reduction::Summarize { upto, tokens }) => {
            return vec![Event::CompactionRequested { upto, tokens, overflow: false }];
        }
        Some(Reduction::Digest { upto, tokens }) => {
            return compaction::digest_events(state, upto, tokens);
        }
        Some(Reduction::Shorten { upto }) => Some(upto),
        None => None,
    };
    let (turn, step, model) = (open.id.clone(), stamp.id(), state.current_model().clone());
    let context_window = Some(state.window());
    vec![Event::StepStarted { turn, step, model, context_window, shortened }]
}

/// True if the workspace must be described before the model call.
pub(super) fn needs_context(state: &State, open: &OpenTurn) -> bool {
    state.rules.context_tokens > 0 && !open.surveyed
}

fn finish_answer(state: &State, open: &OpenTurn, stamp: &Stamp) -> Vec<Event> {
    let verify = &state.rules.verify;
    if open.dirty && verify.auto && state.tool(&verify.tool).is_some() {
        let tool = verify.tool.clone();
        let call = RequestedCall { id: stamp.id(), tool, input: json!({}), malformed: None };
        return vec![Event::VerificationRequested { turn: open.id.clone(), call }];
    }
    vec![Event::TurnCompleted { turn: open.id.clone(), usage: open.usage, verified: open.verified }]
}

fn advance_calls(state: &State, open: &OpenTurn, stamp: &Stamp) -> Vec<Event> {
    let calls = open.calls();
    let beyond = calls.iter().skip(STEP_CALLS_LIMIT).filter(|call| !call.done());
    let refused: Vec<Event> = beyond.map(|call| refuse_excess_call(open, call, stamp)).collect();
    if !refused.is_empty() {
        return refused;
    }
    let mut eligible = eligible(state, calls).map(|(n, _)| n).peekable();
    let mut ready = calls.iter().enumerate().filter(|(n, call)| {
        let eligible = eligible.next_if_eq(n).is_some();
        // Time passes for every call, also for one that waits for calls before it.
        eligible || matches!(call.phase, CallPhase::Asked { .. } | CallPhase::Started(..))
    });
    ready.find_map(|(_, call)| advance_call(state, open, call, stamp)).unwrap_or_default()
}

fn refuse_excess_call(open: &OpenTurn, call: &Call, stamp: &Stamp) -> Event {
    let why =
        format!("not run: only the first {STEP_CALLS_LIMIT} calls of a step are; ask for it again");
    open.completed(call, Outcome::ended(Ending::Denied, why), stamp)
}

fn advance_call(state: &State, open: &OpenTurn, call: &Call, stamp: &Stamp) -> Option<Vec<Event>> {
    match &call.phase {
        CallPhase::Requested => call_decision::requested(state, open, call, stamp),
        CallPhase::Reviewed { assessment, answer, comment } => {
            let review = (assessment, *answer, comment.as_str());
            Some(vec![call_decision::reviewed(state, open, call, review, stamp)])
        }
        CallPhase::Asked { expires: Some(expires), .. } if stamp.at >= *expires => {
            Some(vec![Event::ApprovalAnswered {
                turn: open.id.clone(),
                call: call.id().clone(),
                tool: call.request.tool.clone(),
                answer: ApprovalDecision::Deny,
                reason: Some(APPROVAL_TIMED_OUT.into()),
                by: DecidedBy::Clock,
                remember: RememberScope::Once,
            }])
        }
        CallPhase::Started(..) if call.overdue(stamp.at) => {
            Some(vec![open.completed(call, client_tools::timed_out(), stamp)])
        }
        CallPhase::Started(..) => claims::expired(open, call, stamp.at, stamp).map(|end| vec![end]),
        CallPhase::InReview { .. } | CallPhase::Asked { .. } | CallPhase::Done(_) => None,
        CallPhase::Allowed => Some(vec![call_decision::start_call(state, open, call, stamp)]),
        CallPhase::Denied { reason } => {
            let why = match reason {
                Some(reason) if !reason.is_empty() => format!("approval denied: {reason}"),
                _ => "approval denied".into(),
            };
            let mut events = vec![open.completed(call, Outcome::ended(Ending::Denied, why), stamp)];
            if state.rules.approval.on_deny == OnDeny::Fail {
                events.extend(fail_turn(open, FailureCode::Denied, "approval denied"));
            }
            Some(events)
        }
    }
}

/// Ends the calls that need no report. Calls that run in the daemon report first; nothing runs for
/// a held turn.
fn stop_turn(state: &State, open: &OpenTurn, cause: &StopCause, stamp: &Stamp) -> Vec<Event> {
    if state.compaction.pending.is_some() {
        return vec![Event::CompactionFailed { reason: "the turn is over".into() }];
    }
    if let Phase::Thinking(step) = &open.phase {
        let reason = match cause {
            StopCause::Cancelled { .. } => "canceled".into(),
            StopCause::Failed { message, .. } => message.clone(),
        };
        return vec![open.interrupted(step, reason, None, stamp)];
    }
    let runs_here =
        |call: &Call| !open.held && matches!(call.phase, CallPhase::Started(_, Placement::Daemon));
    let idle = open.calls().iter().filter(|call| !call.done() && !runs_here(call));
    let ended = |call| {
        open.completed(call, Outcome::ended(Ending::Cancelled, "the turn was stopped"), stamp)
    };
    let events: Vec<Event> = idle.map(ended).collect();
    if !events.is_empty() || open.calls().iter().any(runs_here) {
        return events;
    }
    let (turn, usage) = (open.id.clone(), open.usage);
    vec![match cause.clone() {
        StopCause::Cancelled { reason } => Event::TurnCancelled { turn, reason, usage },
        StopCause::Failed { code, message } => Event::TurnFailed { turn, code, message, usage },
    }]
}

fn fail_turn(open: &OpenTurn, code: FailureCode, message: &str) -> Vec<Event> {
    let cause = StopCause::Failed { code, message: message.into() };
    vec![Event::StopRequested { turn: open.id.clone(), cause }]
}
