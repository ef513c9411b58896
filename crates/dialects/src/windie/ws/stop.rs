//! Stops queries.

use std::collections::HashSet;
use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::session::{Turn, TurnStatus};
use quintet_kernel::{SessionId, State, TurnId};

use super::early_stops::{EARLY_STOP_LIFETIME, Stop};
use super::{Connection, FinishedRequest, PendingOutput, Trouble};
use crate::windie::serve::AppState;
use crate::windie::wire;
use crate::windie::wire::Context;

impl Connection {
    /// Calls a query off, or all of a conversation, or all that are under way. Which ones is decided at
    /// once, so that none is meant that comes later; what is stopped may take a moment to end, and until
    /// it is known whether it can be stopped, the client is sent nothing of its conversation.
    pub(super) async fn stop(
        &mut self,
        id: &str,
        (conversation, turn): (Option<String>, Option<String>),
        out: &mut PendingOutput,
    ) -> Result<(), Trouble> {
        let named: Option<HashSet<SessionId>> = match &conversation {
            Some(name) => {
                self.attend(name).await?;
                Some(self.app.known(&self.identity, name).await?.into_iter().collect())
            }
            None => None,
        };
        // What is being read aloud ends, also if its turn was over already.
        for session in named.clone().unwrap_or_else(|| self.speech.sessions()) {
            self.speech.stop(&session, turn.as_deref());
        }
        let sessions = named.unwrap_or_else(|| self.under_way());
        let stops = self.meant(sessions, conversation.as_deref(), turn.as_deref()).await?;
        for stop in &stops {
            self.subscription(&stop.session).into_iter().for_each(|told| told.stopping += 1);
        }
        let about = Context {
            session_id: None,
            user_id: Some(self.identity.id.clone()),
            conversation_ref: conversation,
            turn_ref: turn,
        };
        let (sessions, id) = (Arc::clone(&self.app.ports.sessions), id.to_owned());
        out.slow.push(Box::pin(async move {
            let stops = withdraw(&*sessions, stops).await;
            let stopped = stops.iter().any(|stop| stop.done);
            FinishedRequest { answers: vec![wire::stop_ack(&id, stopped, about)], stops }
        }));
        Ok(())
    }

    /// Goes on with conversations whose stops are decided: of a turn that is stopped the client hears no
    /// more but that it is over.
    pub(super) fn stopped(&mut self, stops: Vec<Stopping>) {
        for stop in stops {
            let Some(told) = self.subscription(&stop.session) else { continue };
            told.stopping = told.stopping.saturating_sub(1);
            if stop.done {
                told.stop(&stop.name);
            }
        }
    }

    /// The turns that a stop is meant for, in these sessions. Where there are none it may have overtaken
    /// what it stops, and is remembered; but not if it came too late for something.
    async fn meant(
        &self,
        sessions: HashSet<SessionId>,
        conversation: Option<&str>,
        turn: Option<&str>,
    ) -> Result<Vec<Stopping>, Error> {
        let app = &self.app;
        let (mut found, mut lately) = (Vec::new(), false);
        for session in sessions {
            let state = app.ports.sessions.view(&session).await?;
            lately |= ended_lately(app, &state);
            found.extend(meant(&state, turn));
        }
        let late = lately && turn.is_none();
        if found.is_empty() && !late && (conversation.is_some() || turn.is_some()) {
            app.stops.remember(Stop {
                user: self.identity.id.clone(),
                conversation: conversation.map(Into::into),
                turn: turn.map(Into::into),
                at: app.now(),
            });
        }
        Ok(found)
    }

    /// The sessions that the user has turns under way in, and those that this connection follows.
    fn under_way(&self) -> HashSet<SessionId> {
        let mut sessions = self.app.turns.sessions(Some(&self.identity.id));
        sessions.extend(self.subscriptions.iter().map(|told| told.session.clone()));
        sessions
    }
}

/// A turn that is to be stopped.
#[derive(Debug)]
pub(super) struct Stopping {
    session: SessionId,
    turn: TurnId,
    /// The client's name for it.
    name: String,
    /// Whether it is stopped.
    done: bool,
}

/// Calls turns off; notes which ones that is done for.
async fn withdraw(sessions: &dyn Sessions, mut stops: Vec<Stopping>) -> Vec<Stopping> {
    for stop in &mut stops {
        let reason = Some("stopped by the user".into());
        let command = Command::CancelTurn { turn: stop.turn.clone(), reason };
        match sessions.submit(&stop.session, command).await {
            Ok(_) => stop.done = true,
            Err(error) => tracing::warn!(%error, "a query could not be stopped"),
        }
    }
    stops
}

/// True if a turn is over.
pub(super) fn is_over(status: TurnStatus) -> bool {
    match status {
        TurnStatus::Pending | TurnStatus::Running | TurnStatus::WaitingApproval => false,
        TurnStatus::Succeeded | TurnStatus::Failed | TurnStatus::Cancelled => true,
    }
}

/// The turns that a stop is meant for: the one it names, or all that are not over.
fn meant(state: &State, named: Option<&str>) -> Vec<Stopping> {
    let fits = |turn: &&Turn| match named {
        Some(named) => turn.options.key.as_deref() == Some(named) || turn.id.as_str() == named,
        None => {
            turn.options.key.is_some() || state.open.as_ref().is_some_and(|it| it.id == turn.id)
        }
    };
    let turns = state.turns.iter().filter(|turn| !is_over(turn.status)).filter(fits);
    let stopping = |turn: &Turn| Stopping {
        session: state.id.clone(),
        turn: turn.id.clone(),
        name: turn.options.key.clone().unwrap_or_else(|| turn.id.to_string()),
        done: false,
    };
    turns.map(stopping).collect()
}

fn ended_lately(app: &AppState, state: &State) -> bool {
    let last = state.turns.iter().filter_map(|turn| turn.completed).max();
    last.is_some_and(|last| app.now().since(last) < EARLY_STOP_LIFETIME)
}

#[cfg(test)]
mod tests;
