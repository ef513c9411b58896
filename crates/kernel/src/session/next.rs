//! The work that must be in progress for a state.
//!
//! The list is complete: the runtime starts effects that are new and stops those that are no
//! longer listed. After a crash the same state gives the same list. While a turn is being
//! stopped, every call that was started must still be reported as finished, even if it never
//! began because the turn was stopped first.

use crate::id::{CallId, MessageId, SessionId, StepId, TurnId};
use crate::policy::Verdict;
use crate::session::advance::{eligible, needs_context};
use crate::session::call_decision;
use crate::session::state::State;
use crate::session::turn::{Call, CallPhase, OpenTurn, Phase};
use crate::time::Time;
use crate::tool::Placement;

/// Work that the runtime must have in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Call the model.
    CallModel(StepId),
    /// Describe the workspace for the turn's model.
    GatherContext(TurnId),
    /// Assess a call, so that it can be decided.
    AssessCall(CallId),
    /// Let a model review a change.
    ReviewCall(CallId),
    /// Run a call.
    RunCall(CallId),
    /// Revert or reapply the file changes of a turn.
    RevertTurn(TurnId),
    /// Summarize the history up to a message.
    Summarize(MessageId),
    /// Write the facts of a summary to memory.
    SaveMemory(MessageId),
    /// Stop the subagent of a call that has ended.
    CancelSubagent(SessionId),
    /// Send [`crate::Command::Wake`] at this time.
    WakeAt(Time),
}

impl Effect {
    /// True if the effect may start before the events that led to it are durable, because
    /// repeating it is harmless.
    pub fn repeatable(&self) -> bool {
        match self {
            Self::CallModel(_)
            | Self::GatherContext(_)
            | Self::AssessCall(_)
            | Self::ReviewCall(_)
            | Self::Summarize(_)
            | Self::WakeAt(_) => true,
            Self::RunCall(_)
            | Self::RevertTurn(_)
            | Self::SaveMemory(_)
            | Self::CancelSubagent(_) => false,
        }
    }
}

/// The work that must be in progress for a state.
pub fn next(state: &State) -> Vec<Effect> {
    let mut effects = Vec::new();
    let held = state.open.as_ref().is_some_and(|open| open.held);
    let summary = state.compaction.pending.clone().filter(|_| !held);
    effects.extend(summary.map(Effect::Summarize));
    effects.extend(state.reverting.clone().map(Effect::RevertTurn));
    effects.extend(state.saving.iter().map(|saving| Effect::SaveMemory(saving.upto.clone())));
    let orphans = state.subagents.orphans();
    effects.extend(orphans.map(|known| Effect::CancelSubagent(known.session.clone())));
    let open = state.open.as_ref().filter(|open| open.stopping.is_none() && !open.held);
    if let Some(open) = open {
        match &open.phase {
            Phase::Thinking(step) => effects.push(Effect::CallModel(step.id.clone())),
            Phase::Acting(calls) if calls.iter().all(Call::done) => {
                let surveys = needs_context(state, open) && state.compaction.pending.is_none();
                effects.extend(surveys.then(|| Effect::GatherContext(open.id.clone())));
            }
            Phase::Acting(_) => effects.extend(call_effects(state, open)),
            Phase::Answered => {}
        }
        effects.extend(next_deadline(state, open).map(Effect::WakeAt));
    }
    effects
}

fn call_effects<'a>(state: &'a State, open: &'a OpenTurn) -> impl Iterator<Item = Effect> + 'a {
    let mut eligible = eligible(state, open.calls()).map(|(n, _)| n).peekable();
    open.calls().iter().enumerate().filter_map(move |(n, call)| {
        let eligible = eligible.next_if_eq(&n).is_some();
        match &call.phase {
            CallPhase::Started(_, Placement::Daemon) => Some(Effect::RunCall(call.id().clone())),
            CallPhase::Requested if eligible => {
                let tool = state.tool(&call.request.tool)?;
                let verdict = call_decision::verdict(state, (open, call), tool, None);
                let look = matches!(verdict, Verdict::Ask | Verdict::Assess);
                look.then(|| Effect::AssessCall(call.id().clone()))
            }
            CallPhase::InReview { .. } => Some(Effect::ReviewCall(call.id().clone())),
            CallPhase::Requested
            | CallPhase::Reviewed { .. }
            | CallPhase::Asked { .. }
            | CallPhase::Allowed
            | CallPhase::Denied { .. }
            | CallPhase::Started(_, Placement::Client)
            | CallPhase::Done(_) => None,
        }
    })
}

/// The next time at which something changes without an event.
fn next_deadline(state: &State, open: &OpenTurn) -> Option<Time> {
    let expiry = |call: &Call| match call.phase {
        CallPhase::Asked { expires, .. } => expires,
        CallPhase::Started(_, Placement::Client) => {
            let lost_until = call.claim.as_ref().and_then(|claim| claim.lost_until);
            call.expires.into_iter().chain(lost_until).min()
        }
        CallPhase::Requested
        | CallPhase::InReview { .. }
        | CallPhase::Reviewed { .. }
        | CallPhase::Allowed
        | CallPhase::Denied { .. }
        | CallPhase::Started(_, Placement::Daemon)
        | CallPhase::Done(_) => None,
    };
    let approvals = open.calls().iter().filter_map(expiry);
    let questions = open.questions.iter().filter_map(|asked| asked.expires);
    approvals.chain(questions).chain(open.clock.deadline(open.limits(&state.rules).time)).min()
}
