//! Replaces turns: the next message takes their place.

use crate::event::{Event, StopCause};
use crate::id::TurnId;
use crate::model::Usage;
use crate::session::Refusal;
use crate::session::state::State;
use crate::session::turn::{Turn, TurnStatus};

/// Replaces a turn and those after it. Unfinished ones are cancelled; replaced turns stay replaced.
pub(super) fn supersede(state: &State, from: &TurnId) -> Result<Vec<Event>, Refusal> {
    let Some(turn) = state.turn(from) else { return Err(Refusal::UnknownTurn(from.clone())) };
    if turn.superseded {
        return Ok(Vec::new());
    }
    let replaced = state.turns.iter().skip_while(|turn| turn.id != *from);
    let mut events: Vec<Event> =
        replaced.filter_map(|turn| cancel_unfinished(state, turn)).collect();
    events.push(Event::Superseded { from: from.clone() });
    Ok(events)
}

fn cancel_unfinished(state: &State, turn: &Turn) -> Option<Event> {
    let reason = Some("replaced".to_owned());
    match turn.status {
        TurnStatus::Pending => {
            Some(Event::TurnCancelled { turn: turn.id.clone(), reason, usage: Usage::default() })
        }
        TurnStatus::Running | TurnStatus::WaitingApproval => {
            let open = state.open.as_ref().filter(|open| open.stopping.is_none())?;
            let cause = StopCause::Cancelled { reason };
            Some(Event::StopRequested { turn: open.id.clone(), cause })
        }
        TurnStatus::Succeeded | TurnStatus::Failed | TurnStatus::Cancelled => None,
    }
}
