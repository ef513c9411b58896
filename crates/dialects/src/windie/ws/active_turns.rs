//! The open turns of clients: how many there are, and which connection started each. In memory only; a restart
//! counts from zero.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quintet_kernel::SessionId;
use tokio::sync::watch;

/// The open turns, by session and the client's id.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    open: Mutex<HashMap<(SessionId, String), ActiveTurn>>,
    /// Number of connections so far.
    connections: AtomicU64,
    disconnected: watch::Sender<()>,
}

#[derive(Debug)]
struct ActiveTurn {
    user: String,
    /// The connection that started the turn, until it ends.
    connection: Option<u64>,
}

impl Turns {
    /// The number of a new connection.
    pub(crate) fn connect(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records that a connection ended: others may run the calls of its turns.
    pub(crate) fn disconnect(&self, connection: u64) {
        for turn in self.open().values_mut() {
            turn.connection.take_if(|starter| *starter == connection);
        }
        self.disconnected.send_replace(());
    }

    /// Changes whenever a connection ends.
    pub(crate) fn disconnected(&self) -> watch::Receiver<()> {
        self.disconnected.subscribe()
    }

    /// Records that a user starts a turn on a connection.
    pub(crate) fn begin(&self, turn: (&SessionId, &str), user: &str, connection: u64) {
        let started = ActiveTurn { user: user.into(), connection: Some(connection) };
        self.open().insert((turn.0.clone(), turn.1.into()), started);
    }

    /// Records that a turn ended, or never began.
    pub(crate) fn end(&self, session: &SessionId, name: &str) {
        self.open().remove(&(session.clone(), name.to_owned()));
    }

    /// Forgets turns of a session without a connection, unless they are still open.
    pub(crate) fn retain(&self, session: &SessionId, is_open: impl Fn(&str) -> bool) {
        self.open()
            .retain(|(of, name), turn| of != session || turn.connection.is_some() || is_open(name));
    }

    /// The connection that started a turn, until it ends.
    pub(crate) fn starting_connection(&self, session: &SessionId, name: &str) -> Option<u64> {
        self.open().get(&(session.clone(), name.to_owned()))?.connection
    }

    /// The number of open turns, of a user and of all.
    pub(crate) fn count(&self, user: &str) -> (usize, usize) {
        let turns = self.open();
        (turns.values().filter(|turn| turn.user == user).count(), turns.len())
    }

    /// The sessions with open turns, of a user or of all.
    pub(crate) fn sessions(&self, user: Option<&str>) -> HashSet<SessionId> {
        let turns = self.open();
        let turns = turns.iter().filter(|(_, turn)| user.is_none_or(|user| turn.user == user));
        turns.map(|((session, _), _)| session.clone()).collect()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<(SessionId, String), ActiveTurn>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
