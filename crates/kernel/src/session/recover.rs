//! Recovers a turn after a restart.

use crate::change::{UnrecordedChange, changed_paths};
use crate::command::InterruptedCall;
use crate::event::{Event, FailureCode, StopCause};
use crate::id::TurnId;
use crate::policy::Recovery;
use crate::session::state::State;
use crate::session::turn::{Call, CallPhase, Phase};
use crate::session::{claims, questions};
use crate::stamp::Stamp;
use crate::tool::{Ending, Outcome, Placement};

/// Ends calls that cannot be repeated safely and reports them to the model as interrupted;
/// everything else continues.
pub(super) fn recover(
    state: &State,
    interrupted: Vec<InterruptedCall>,
    stamp: &Stamp,
) -> Vec<Event> {
    let Some(open) = &state.open else {
        return Vec::new();
    };
    let asked = open.stopping.is_some() || open.waits_for_approval();
    // The client may not have noticed the restart, so its result is awaited whatever the recovery
    // policy.
    let waits = asked || open.waits_for_client();
    let leave = state.rules.recovery == Recovery::Leave && !waits;
    let over = leave || open.stopping.is_some();
    let lost = |call: &&Call| match call.phase {
        CallPhase::Started(kind, Placement::Daemon) => over || !kind.repeatable(),
        CallPhase::Requested
        | CallPhase::InReview { .. }
        | CallPhase::Reviewed { .. }
        | CallPhase::Asked { .. }
        | CallPhase::Allowed
        | CallPhase::Denied { .. }
        | CallPhase::Started(_, Placement::Client)
        | CallPhase::Done(_) => false,
    };
    let known = |call: &Call| {
        let found = interrupted.iter().find(|found| found.call == *call.id());
        found.cloned()
    };
    let end = |call| open.completed(call, interrupted_outcome(call, known(call)), stamp);
    let mut events: Vec<Event> = open.calls().iter().filter(lost).map(end).collect();
    events.extend(questions::lost(open));
    if let Phase::Thinking(step) = &open.phase
        && step.written > 0
    {
        events.push(open.interrupted(step, "the daemon stopped".into(), None, stamp));
    }
    events.extend(claims::restarted(state, open, stamp));
    let turn = open.id.clone();
    let reason = "the daemon stopped while this turn was running";
    let timed = open.calls().iter().any(|call| call.with_client() && call.expires.is_some());
    if timed && !asked && !open.held {
        events.push(turn_resumed(state, turn, stamp));
        return events;
    }
    match state.rules.recovery {
        Recovery::Continue if !waits && !open.held => {
            events.push(turn_resumed(state, turn, stamp));
        }
        Recovery::Ask if !waits && !open.held => {
            events.push(Event::TurnHeld { turn, reason: reason.into() });
        }
        Recovery::Leave if leave => {
            let cause =
                StopCause::Failed { code: FailureCode::Interrupted, message: reason.into() };
            events.push(Event::StopRequested { turn, cause });
        }
        Recovery::Continue | Recovery::Ask | Recovery::Leave => {}
    }
    events
}

fn turn_resumed(state: &State, turn: TurnId, stamp: &Stamp) -> Event {
    let after = stamp.at.since(state.updated).as_millis();
    Event::TurnResumed { turn, after_ms: u64::try_from(after).unwrap_or(u64::MAX) }
}

/// The outcome of an interrupted call, with its file changes if they are known.
fn interrupted_outcome(call: &Call, found: Option<InterruptedCall>) -> Outcome {
    let mut why =
        "the daemon stopped while this call was running; how far it got is not known".to_owned();
    if let Some(InterruptedCall { changes, .. }) = &found {
        let paths = changed_paths(changes);
        let paths = if paths.is_empty() { "nothing".to_owned() } else { paths.join(", ") };
        why += &format!("; of the files it named, changed: {paths}");
    }
    let may_change = matches!(call.phase, CallPhase::Started(kind, _) if kind.changes_workspace());
    let unknown = found.is_none() && may_change;
    let reason = || format!("the daemon stopped while {} ran", call.request.tool);
    let gap =
        unknown.then(|| UnrecordedChange { path: String::new(), paths: None, reason: reason() });
    let mut outcome = Outcome::ended(Ending::Interrupted, why);
    outcome.unrecorded = gap.into_iter().collect();
    if let Some(InterruptedCall { changes, more_changes, unrecorded, .. }) = found {
        (outcome.changes, outcome.more_changes) = (changes, more_changes);
        outcome.unrecorded.extend(unrecorded);
    }
    outcome
}
