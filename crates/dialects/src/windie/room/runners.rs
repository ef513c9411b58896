//! Which listener is offered the calls of a turn first. Who runs a call is decided by its claim in the
//! session; whoever asked for the turn is merely preferred.

use std::collections::HashMap;

use quintet_kernel::CallId;

use super::{Listener, Log, Told, Who};

/// The connections that are offered the calls of a turn first.
#[derive(Debug, Default)]
pub(super) struct Runners {
    /// The connection that asked for each turn.
    of: HashMap<String, u64>,
    /// Calls that are to be offered to somebody else.
    given_up: Vec<CallId>,
}

impl Runners {
    /// A connection asks for a turn.
    pub(super) fn choose(&mut self, turn: &str, connection: u64) {
        self.of.insert(turn.into(), connection);
    }

    /// Nobody asks for the calls of these turns any more.
    pub(super) fn forget(&mut self, which: impl Fn(&str) -> bool) {
        self.of.retain(|turn, _| !which(turn));
    }

    /// The calls that are to be offered to somebody else; told once.
    pub(super) fn given_up(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.given_up)
    }

    /// True if a listener is offered the calls of a frame: it asked for the turn, or whoever did is gone,
    /// or it may itself be the client that has claimed them, on another connection.
    pub(super) fn may_run(&self, who: &Who, told: &Told, seats: &HashMap<u64, Listener>) -> bool {
        let seated = |runner: &u64| seats.values().find(|seat| seat.who.connection == *runner);
        match self.of.get(&told.turn).and_then(seated).map(|seat| &seat.who) {
            None => true,
            Some(asked) if asked.connection == who.connection => true,
            Some(asked) => told.claimed && who.client.is_some() && asked.client == who.client,
        }
    }
}

impl Log {
    /// Takes calls that nobody claimed from a listener that is gone, for others that are there. True if
    /// there are any.
    pub(super) fn give_up(&mut self, connection: u64) -> bool {
        if !self.seats.values().any(|seat| seat.who.connection != connection) {
            return false;
        }
        let of = &self.runners.of;
        let his = self.frames.iter().filter(|told| of.get(&told.turn) == Some(&connection));
        let unclaimed = his.filter(|told| !told.claimed).filter_map(|told| told.hands.as_ref());
        let calls: Vec<CallId> = unclaimed.flat_map(|hands| hands.calls.clone()).collect();
        self.supersede(&calls);
        let any = !calls.is_empty();
        self.runners.given_up.extend(calls);
        any
    }
}
