//! Stops queries.

use std::collections::HashSet;
use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::session::{Turn, TurnStatus};
use quintet_kernel::{SessionId, State, TurnId};

use super::early_stops::{EARLY_STOP_LIFETIME, Stop};
use super::{Connection, RequestError};
use crate::windie::serve::AppState;
use crate::windie::wire;

impl Connection {
    /// Stops a query, or all of a conversation, or all that are open. Which ones is decided at once, so that
    /// no later query is stopped. Until it is known whether they can be stopped, nothing of their
    /// conversations is sent.
    pub(super) async fn stop(
        &mut self,
        id: String,
        conversation: Option<String>,
        turn: Option<String>,
    ) -> Result<(), RequestError> {
        let named: Option<HashSet<SessionId>> = match &conversation {
            Some(name) => Some(self.follow_known(name).await?.into_iter().collect()),
            None => None,
        };
        // The speech of a turn ends also if the turn itself has already ended.
        for session in named.clone().unwrap_or_else(|| self.speech.sessions()) {
            self.speech.stop(&session, turn.as_deref());
        }
        let sessions = named.unwrap_or_else(|| self.open_sessions());
        let stops = self.turns_to_stop(sessions, conversation.as_deref(), turn.as_deref()).await?;
        for stop in &stops {
            self.subscription(&stop.session).into_iter().for_each(|it| it.stopping += 1);
        }
        let about = self.context(conversation, turn);
        let sessions = Arc::clone(&self.app.ports.sessions);
        self.running.spawn(async move {
            let stops = cancel(&*sessions, stops).await;
            let stopped = stops.iter().any(|stop| stop.done);
            (wire::stop_ack(&id, stopped, about), stops)
        });
        Ok(())
    }

    /// Continues conversations whose stops were carried out: of a stopped turn only the end is sent.
    pub(super) fn stopped(&mut self, stops: Vec<Stopping>) {
        for stop in stops {
            let Some(subscription) = self.subscription(&stop.session) else { continue };
            subscription.stopping = subscription.stopping.saturating_sub(1);
            if stop.done {
                subscription.stop(&stop.name);
            }
        }
    }

    /// The turns of these sessions that a stop applies to. If there are none, the stop may have arrived
    /// before its query and is remembered, unless a turn ended a moment ago.
    async fn turns_to_stop(
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
            found.extend(matching_turns(&state, turn));
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

    /// The sessions with open turns of the user, and those that this connection follows.
    fn open_sessions(&self) -> HashSet<SessionId> {
        let mut sessions = self.app.turns.sessions(Some(&self.identity.id));
        sessions.extend(self.subscriptions.iter().map(|it| it.session.clone()));
        sessions
    }
}

/// A turn that is being stopped.
#[derive(Debug)]
pub(super) struct Stopping {
    session: SessionId,
    turn: TurnId,
    /// The client's id of it.
    name: String,
    /// True if it was cancelled.
    done: bool,
}

/// Cancels turns and records which were cancelled.
async fn cancel(sessions: &dyn Sessions, mut stops: Vec<Stopping>) -> Vec<Stopping> {
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

/// True if a turn has ended.
pub(super) fn is_over(status: TurnStatus) -> bool {
    match status {
        TurnStatus::Pending | TurnStatus::Running | TurnStatus::WaitingApproval => false,
        TurnStatus::Succeeded | TurnStatus::Failed | TurnStatus::Cancelled => true,
    }
}

/// The turns that a stop applies to: the one it names, or all that have not ended.
fn matching_turns(state: &State, named: Option<&str>) -> Vec<Stopping> {
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
