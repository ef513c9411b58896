//! The open turns of clients: how many there are, and which connection started each. In memory only; a restart
//! counts from zero.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quintet_kernel::SessionId;
use tokio::sync::watch;

/// The turns that are under way, by their sessions and the clients' names for them.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    under_way: Mutex<HashMap<(SessionId, String), ActiveTurn>>,
    /// The connections that there ever were.
    connections: AtomicU64,
    disconnected: watch::Sender<()>,
}

#[derive(Debug)]
struct ActiveTurn {
    user: String,
    /// The connection that asked; nothing once that is gone.
    connection: Option<u64>,
}

impl Turns {
    /// The number of a new connection.
    pub(crate) fn connect(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that a connection is gone: others may run what its turns lead to.
    pub(crate) fn disconnect(&self, connection: u64) {
        for asked in self.under_way().values_mut() {
            asked.connection.take_if(|asked| *asked == connection);
        }
        self.disconnected.send_replace(());
    }

    /// Changes whenever a connection is gone.
    pub(crate) fn disconnected(&self) -> watch::Receiver<()> {
        self.disconnected.subscribe()
    }

    /// Notes that a user asks for a turn on a connection.
    pub(crate) fn begin(&self, turn: (&SessionId, &str), user: &str, connection: u64) {
        let asked = ActiveTurn { user: user.into(), connection: Some(connection) };
        self.under_way().insert((turn.0.clone(), turn.1.into()), asked);
    }

    /// Notes that a turn is over, or was never begun.
    pub(crate) fn end(&self, session: &SessionId, name: &str) {
        self.under_way().remove(&(session.clone(), name.to_owned()));
    }

    /// Forgets turns of a session without a connection, unless they are still open.
    pub(crate) fn retain(&self, session: &SessionId, open: impl Fn(&str) -> bool) {
        self.under_way()
            .retain(|(of, name), asked| of != session || asked.connection.is_some() || open(name));
    }

    /// The connection that asked for a turn, while it is there.
    pub(crate) fn asking_connection(&self, session: &SessionId, name: &str) -> Option<u64> {
        self.under_way().get(&(session.clone(), name.to_owned()))?.connection
    }

    /// How many turns are under way, of a user and of all.
    pub(crate) fn count(&self, user: &str) -> (usize, usize) {
        let turns = self.under_way();
        (turns.values().filter(|asked| asked.user == user).count(), turns.len())
    }

    /// The sessions that turns are under way in, of a user or of all.
    pub(crate) fn sessions(&self, user: Option<&str>) -> HashSet<SessionId> {
        let turns = self.under_way();
        let meant = turns.iter().filter(|(_, asked)| user.is_none_or(|user| asked.user == user));
        meant.map(|((session, _), _)| session.clone()).collect()
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<(SessionId, String), ActiveTurn>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
