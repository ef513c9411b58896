//! Which client runs a call. Claims are events, so exactly one client runs a call in every
//! protocol, even after a restart.

use crate::client::{Claim, ClientRef};
use crate::event::Event;
use crate::id::CallId;
use crate::session::Refusal;
use crate::session::state::State;
use crate::session::turn::{Call, CallPhase, OpenTurn};
use crate::stamp::Stamp;
use crate::time::Time;
use crate::tool::{Ending, Outcome, Placement};

/// Gives calls to a client, all of them or none. Calls on a lost connection can only be claimed by the same
/// client after it reconnected.
pub(super) fn claim(
    state: &State,
    calls: Vec<CallId>,
    (by, came_back): (&ClientRef, bool),
    stamp: &Stamp,
) -> Result<Vec<Event>, Refusal> {
    let mut events = Vec::new();
    for id in calls {
        let (open, call) = call_awaiting_client(state, &id, by, stamp.at)?;
        match &call.claim {
            Some(claim) if claim.by == *by && claim.lost_until.is_none() => {}
            Some(_) if !came_back => return Err(Refusal::Claimed(id)),
            Some(_) | None => events.push(claim_event(open, id, by)),
        }
    }
    Ok(events)
}

/// Accepts the result of a call that a client ran. An unclaimed call is claimed with it.
pub(super) fn return_result(
    state: &State,
    id: CallId,
    by: &ClientRef,
    outcome: Outcome,
    stamp: &Stamp,
) -> Result<Vec<Event>, Refusal> {
    let (open, call) = call_awaiting_client(state, &id, by, stamp.at)?;
    let claim = call.claim.is_none().then(|| claim_event(open, id, by));
    Ok(claim.into_iter().chain([open.completed(call, outcome, stamp)]).collect())
}

/// Starts the grace time of the calls that a client claimed on a lost connection.
pub(super) fn disconnected(state: &State, client: &ClientRef, stamp: &Stamp) -> Vec<Event> {
    let Some(open) = &state.open else { return Vec::new() };
    let holds = |claim: &Claim| claim.by == *client && claim.lost_until.is_none();
    lost_claims(state, open, holds, stamp)
}

/// Starts the grace time of all clients that run calls: a restart closed all connections.
pub(super) fn restarted(state: &State, open: &OpenTurn, stamp: &Stamp) -> Vec<Event> {
    lost_claims(state, open, |_| true, stamp)
}

/// Ends the claim of a client whose grace time is over; the call is offered again if it may be
/// repeated.
pub(super) fn expired(open: &OpenTurn, call: &Call, at: Time, stamp: &Stamp) -> Option<Event> {
    let until = call.claim.as_ref()?.lost_until?;
    if at < until {
        return None;
    }
    let repeatable = matches!(call.phase, CallPhase::Started(kind, _) if kind.repeatable());
    Some(if repeatable {
        Event::ClaimReleased { turn: open.id.clone(), call: call.id().clone() }
    } else {
        let why = "the client that ran this call is gone; what came of it is not known";
        open.completed(call, Outcome::ended(Ending::Interrupted, why), stamp)
    })
}

/// The call, if it waits for a client and this client belongs to the front end that provides the tool.
fn call_awaiting_client<'a>(
    state: &'a State,
    id: &CallId,
    by: &ClientRef,
    at: Time,
) -> Result<(&'a OpenTurn, &'a Call), Refusal> {
    let open = state.open.as_ref();
    let Some((open, call)) = open.and_then(|open| Some((open, open.call(id)?))) else {
        return Err(if state.calls.contains(id) {
            Refusal::CallOver(id.clone())
        } else {
            Refusal::UnknownCall(id.clone())
        });
    };
    match (&call.phase, &call.claim) {
        (CallPhase::Done(_), _) => Err(Refusal::CallOver(id.clone())),
        // The timeout applies even before the timer fires.
        (CallPhase::Started(_, Placement::Client), _) if call.overdue(at) => {
            Err(Refusal::CallOver(id.clone()))
        }
        (CallPhase::Started(_, Placement::Client), _) if !belongs_to_front_end(call, by) => {
            Err(Refusal::NotDelegated(id.clone()))
        }
        (CallPhase::Started(_, Placement::Client), Some(claim)) if !claim.is_held_by(by) => {
            Err(Refusal::Claimed(id.clone()))
        }
        (CallPhase::Started(_, Placement::Client), _) => Ok((open, call)),
        _ => Err(Refusal::NotDelegated(id.clone())),
    }
}

/// True if the client belongs to the front end that provides the call's tool.
fn belongs_to_front_end(call: &Call, client: &ClientRef) -> bool {
    call.front_end.as_ref().is_none_or(|front_end| front_end == client.front_end())
}

fn claim_event(open: &OpenTurn, call: CallId, by: &ClientRef) -> Event {
    Event::CallClaimed { turn: open.id.clone(), call, by: by.clone() }
}

fn lost_claims(
    state: &State,
    open: &OpenTurn,
    lost: impl Fn(&Claim) -> bool,
    stamp: &Stamp,
) -> Vec<Event> {
    let until = stamp.at.after(state.rules.client_grace);
    let loses = |call: &Call| {
        let claim = call.claim.as_ref().filter(|claim| call.with_client() && lost(claim))?;
        let (turn, call, by) = (open.id.clone(), call.id().clone(), claim.by.clone());
        Some(Event::ClaimHolderLost { turn, call, by, until })
    };
    open.calls().iter().filter_map(loses).collect()
}
