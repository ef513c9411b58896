//! Calling queries off.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::session::TurnStatus;
use quintet_kernel::{SessionId, State, TurnId};

use super::super::conversation::Guest;
use super::super::room::{Client, Stopping};
use super::super::serve::Desk;
use super::super::stops::{REMEMBERED, Stop};
use super::super::wire::{self, Context};
use super::{Connection, Out, Trouble};

impl Connection {
    /// Calls a query off, or all of a conversation, or all that are under way. Which ones is decided at
    /// once, so that none is meant that comes later; what is stopped may take a moment to end.
    pub(super) async fn stop(
        &self,
        id: &str,
        (conversation, turn): (Option<String>, Option<String>),
        out: &mut Out,
    ) -> Result<(), Trouble> {
        let meant = self.desk.meant(&self.guest, conversation.as_deref(), turn.as_deref()).await?;
        let about = Context {
            session_id: None,
            user_id: Some(self.guest.id.clone()),
            conversation_ref: conversation,
            turn_ref: turn,
        };
        let mut stops = Vec::with_capacity(meant.len());
        for (session, turn) in meant {
            let silent = self.desk.silence(&self.guest, &self.name, &session, &turn).await?;
            stops.push((session, turn, silent));
        }
        let (sessions, id) = (Arc::clone(&self.desk.ports.sessions), id.to_owned());
        out.slow.push(Box::pin(async move {
            let mut stopped = false;
            for (session, turn, silent) in stops {
                stopped |= withdraw(&*sessions, &session, turn, silent).await;
            }
            vec![wire::stop_ack(&id, stopped, about)]
        }));
        Ok(())
    }
}

/// Calls a turn off; says whether that is done. Who wanted it hears on of one that goes on.
async fn withdraw(
    sessions: &dyn Sessions,
    session: &SessionId,
    turn: TurnId,
    silent: Vec<Stopping>,
) -> bool {
    let reason = Some("stopped by the user".into());
    match sessions.submit(session, Command::Withdraw { turn, reason }).await {
        Ok(_) => {
            silent.into_iter().for_each(Stopping::done);
            true
        }
        Err(error) => {
            tracing::warn!(%error, "a query could not be stopped");
            false
        }
    }
}

impl Desk {
    /// The turns that a stop is meant for. Where there are none it may have overtaken what it stops, and
    /// is remembered; but not if it came too late for something.
    async fn meant(
        &self,
        guest: &Guest,
        conversation: Option<&str>,
        turn: Option<&str>,
    ) -> Result<Vec<(SessionId, TurnId)>, Error> {
        let sessions = match conversation {
            Some(name) => self.known(guest, name).await?.into_iter().collect(),
            None => self.told(guest),
        };
        let (mut found, mut lately) = (Vec::new(), false);
        for session in sessions {
            let state = self.ports.sessions.view(&session).await?;
            lately |= ended_lately(self, &state);
            found.extend(meant(&state, turn).into_iter().map(|turn| (session.clone(), turn)));
        }
        let late = lately && turn.is_none();
        if found.is_empty() && !late && (conversation.is_some() || turn.is_some()) {
            self.stops.remember(Stop {
                user: guest.id.clone(),
                conversation: conversation.map(Into::into),
                turn: turn.map(Into::into),
                at: self.now(),
            });
        }
        Ok(found)
    }

    /// Whoever stops a turn wants to hear no more of it but that it is over; until it is known whether
    /// it is stopped, he hears nothing of it.
    async fn silence(
        &self,
        guest: &Guest,
        agent: &Client,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<Vec<Stopping>, Error> {
        let state = self.ports.sessions.view(session).await?;
        let key = state.turn(turn).and_then(|turn| turn.options.key.clone());
        let name = key.unwrap_or_else(|| turn.to_string());
        let rooms = self.rooms.of_user(&guest.id).into_iter().map(|(_, room)| room);
        let told = rooms.filter(|room| room.session == *session);
        Ok(told.map(|room| room.stopping(agent, &name)).collect())
    }

    /// The sessions of a user that are told.
    fn told(&self, guest: &Guest) -> Vec<SessionId> {
        let rooms = self.rooms.of_user(&guest.id);
        rooms.into_iter().map(|(_, room)| room.session.clone()).collect()
    }
}

/// The turns that a stop is meant for: the one it names, or all that are not over.
fn meant(state: &State, named: Option<&str>) -> Vec<TurnId> {
    let waits = |status: TurnStatus| match status {
        TurnStatus::Pending | TurnStatus::Running | TurnStatus::WaitingApproval => true,
        TurnStatus::Succeeded | TurnStatus::Failed | TurnStatus::Cancelled => false,
    };
    let fits = |turn: &&quintet_kernel::session::Turn| match named {
        Some(named) => turn.options.key.as_deref() == Some(named) || turn.id.as_str() == named,
        None => {
            turn.options.key.is_some() || state.open.as_ref().is_some_and(|it| it.id == turn.id)
        }
    };
    let turns = state.turns.iter().filter(|turn| waits(turn.status)).filter(fits);
    turns.map(|turn| turn.id.clone()).collect()
}

fn ended_lately(desk: &Desk, state: &State) -> bool {
    let last = state.turns.iter().filter_map(|turn| turn.completed).max();
    last.is_some_and(|last| desk.now().since(last) < REMEMBERED)
}

#[cfg(test)]
mod tests;
