//! Records which ends of turns clients have certainly seen, so that a client that reconnects gets the others
//! again. In memory only: after a restart all recent ends count as unseen, which is harmless, because a client
//! drops duplicates.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::session::{Turn, TurnStatus};
use quintet_kernel::{SessionId, State, Time};

use crate::windie::wire::query::AGENT;

/// How long the end of a turn is sent to a client that was disconnected.
pub(crate) const REDELIVERY_WINDOW: Duration = Duration::from_secs(15 * 60);
/// How long it is recorded what a client has seen.
const ACKNOWLEDGED_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A client: its user, and the id of its agent, if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) user: String,
    pub(crate) agent: Option<String>,
}

/// The ends of turns that clients have seen, by conversation.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged(Mutex<HashMap<(Client, SessionId), Seen>>);

#[derive(Debug)]
struct Seen {
    /// The client's name of the conversation.
    conversation: String,
    /// Ends up to this time were seen.
    up_to: Time,
    noted: Time,
}

impl Acknowledged {
    /// Records that a client follows a conversation under a name. In one that it did not follow before,
    /// ends up to `up_to` count as seen.
    pub(crate) fn follow(&self, of: (&Client, &SessionId), name: &str, (up_to, now): (Time, Time)) {
        let mut seen = self.seen();
        seen.retain(|_, seen| now.since(seen.noted) < ACKNOWLEDGED_LIFETIME);
        let known = seen.entry((of.0.clone(), of.1.clone())).or_insert_with(|| Seen {
            conversation: String::new(),
            up_to,
            noted: now,
        });
        (known.conversation, known.noted) = (name.into(), now);
    }

    /// Records that a client has seen the end of a turn.
    pub(crate) fn note(&self, client: &Client, session: &SessionId, end: Time) {
        if let Some(seen) = self.seen().get_mut(&(client.clone(), session.clone())) {
            seen.up_to = seen.up_to.max(end);
        }
    }

    /// The sessions that a client follows or followed, with its names of them.
    pub(crate) fn sessions(&self, client: &Client) -> Vec<(String, SessionId)> {
        let seen = self.seen();
        let its = seen.iter().filter(|((of, _), _)| of == client);
        its.map(|((_, session), seen)| (seen.conversation.clone(), session.clone())).collect()
    }

    /// The first turn that a client has to be sent: one that is open, or whose end it may not have seen.
    pub(crate) fn first_unseen<'s>(
        &self,
        client: &Client,
        state: &'s State,
        now: Time,
    ) -> Option<&'s Turn> {
        let up_to = self.up_to(client, &state.id);
        state.turns.iter().find(|turn| is_unseen(turn, client, up_to, now))
    }

    /// True if a client may wait for more of a session: it followed the session, or started a turn that has
    /// to be sent.
    pub(crate) fn is_awaited(&self, client: &Client, state: &State, now: Time) -> bool {
        let up_to = self.up_to(client, &state.id);
        let mut unseen = state.turns.iter().filter(|turn| is_unseen(turn, client, up_to, now));
        unseen.any(|turn| up_to.is_some() || is_by(turn, client))
    }

    fn up_to(&self, client: &Client, session: &SessionId) -> Option<Time> {
        self.seen().get(&(client.clone(), session.clone())).map(|seen| seen.up_to)
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<(Client, SessionId), Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_unseen(turn: &Turn, client: &Client, up_to: Option<Time>, now: Time) -> bool {
    match turn.status {
        TurnStatus::Running | TurnStatus::WaitingApproval => true,
        TurnStatus::Pending => turn.options.queued,
        TurnStatus::Succeeded | TurnStatus::Failed | TurnStatus::Cancelled => {
            let recent = turn.completed.filter(|end| now.since(*end) < REDELIVERY_WINDOW);
            recent.is_some_and(|end| up_to.map_or(is_by(turn, client), |up_to| end > up_to))
        }
    }
}

/// True if an agent of the client started a turn.
fn is_by(turn: &Turn, client: &Client) -> bool {
    let agent = turn.options.front_end_data(AGENT).and_then(|agent| agent.as_str());
    turn.options.key.is_some() && agent == client.agent.as_deref()
}

#[cfg(test)]
mod tests;
