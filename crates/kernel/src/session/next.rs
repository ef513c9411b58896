//! What the world should do now.
//!
//! The answer is complete: whoever carries effects out starts those that are new and ends those that
//! are no longer named. After a crash the same question gives the same answer. While a turn is being
//! stopped, every call of it that is started here must still be reported as finished, also one that
//! was never begun because the turn was stopped first.

use crate::id::{CallId, MessageId, SessionId, StepId, TurnId};
use crate::policy::Verdict;
use crate::session::advance::{eligible, needs_context};
use crate::session::call_decision;
use crate::session::state::State;
use crate::session::turn::{Call, CallPhase, OpenTurn, Phase};
use crate::time::Time;
use crate::tool::Placement;

/// Something the world should do now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Ask the model.
    CallModel(StepId),
    /// Look at the workspace, so that the turn's model can be told.
    GatherContext(TurnId),
    /// Look at a call, so that it can be judged.
    AssessCall(CallId),
    /// Have the model read a change again.
    ReviewCall(CallId),
    /// Run a call.
    RunCall(CallId),
    /// Undo what a turn did to files.
    RevertTurn(TurnId),
    /// Have history summarized.
    Summarize(MessageId),
    /// Write the facts of a summary to memory.
    SaveMemory(MessageId),
    /// Stop a session that worked for a call that is over.
    CancelSubagent(SessionId),
    /// Come back at that time with [`crate::Command::Wake`].
    WakeAt(Time),
}

impl Effect {
    /// Whether it may begin before the events that led to it are durable, because doing it twice is
    /// the same as doing it once.
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

/// What the world should do now.
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

/// The first moment at which time alone changes something.
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
    let questions = open.calls().iter().filter_map(expiry);
    questions.chain(open.clock.deadline(open.limits(&state.rules).time)).min()
}
