//! Who runs the calls that a conversation leads to. A call that somebody was handed may have run, though
//! he is gone: it is his until it is over, and only what he never heard of goes to somebody else.

use std::collections::HashMap;

use quintet_kernel::CallId;

use super::{Client, Listener, Log, Who};

/// Who runs what.
#[derive(Debug, Default)]
pub(super) struct Runners {
    /// The connection that runs the calls of each turn that asks for some.
    of: HashMap<String, u64>,
    /// Calls that are to be handed to somebody else.
    given_up: Vec<CallId>,
}

impl Runners {
    /// A connection runs the calls of a turn.
    pub(super) fn choose(&mut self, turn: &str, connection: u64) {
        self.of.insert(turn.into(), connection);
    }

    /// Nobody asks for the calls of these turns any more.
    pub(super) fn forget(&mut self, which: impl Fn(&str) -> bool) {
        self.of.retain(|turn, _| !which(turn));
    }

    /// The calls that are to be handed to somebody else; told once.
    pub(super) fn given_up(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.given_up)
    }

    /// A client that comes back on another connection goes on with what it ran, though its old one may
    /// not be known to be gone.
    pub(super) fn follow_on(&mut self, who: &Who, seats: &HashMap<u64, Listener>) {
        let before = seats.values().filter(|seat| seat.who.client == who.client);
        let before: Vec<u64> = before.map(|seat| seat.who.connection).collect();
        for runner in self.of.values_mut() {
            if who.client.is_some() && before.contains(runner) {
                *runner = who.connection;
            }
        }
    }

    /// Whether somebody runs what a frame hands over: who has heard of it before does, or else who asked
    /// for the turn, or where he is gone the first that hears of it.
    pub(super) fn runs(
        &mut self,
        who: &Who,
        (turn, by): (&str, &Option<Who>),
        seats: &HashMap<u64, Listener>,
    ) -> bool {
        let there = |runner: &u64| seats.values().any(|seat| seat.who.connection == *runner);
        if let Some(by) = by {
            // One without a name is taken for the one without a name who is gone.
            let back = by.client == who.client && (who.client.is_some() || !there(&by.connection));
            return by.connection == who.connection || back;
        }
        match self.of.get(turn).copied().filter(there) {
            Some(runner) => runner == who.connection,
            None => {
                self.choose(turn, who.connection);
                true
            }
        }
    }
}

impl Log {
    /// Takes calls from a listener who is gone and has not heard of them, for others who are there; says
    /// whether there are any.
    pub(super) fn give_up(&mut self, connection: u64) -> bool {
        if !self.seats.values().any(|seat| seat.who.connection != connection) {
            return false;
        }
        let of = &self.runners.of;
        let his = self.frames.iter().filter(|told| of.get(&told.turn) == Some(&connection));
        // Of those without a name, one that came later is the one that is gone, come back.
        let nameless =
            |seat: &&Listener| seat.who.client.is_none() && seat.who.connection > connection;
        let back = self.seats.values().find(nameless).map(|seat| seat.who.connection);
        let unheard = his.filter(|told| match &told.by {
            None => true,
            Some(by) => by.client.is_none() && by.connection == connection && back.is_some(),
        });
        let calls =
            unheard.filter_map(|told| told.hands.as_ref()).flat_map(|hands| hands.calls.clone());
        let calls: Vec<CallId> = calls.collect();
        self.supersede(&calls);
        for runner in self.runners.of.values_mut().filter(|runner| **runner == connection) {
            *runner = back.unwrap_or(connection);
        }
        let any = !calls.is_empty();
        self.runners.given_up.extend(calls);
        any
    }

    /// A client was handed these calls before the daemon started again.
    pub(super) fn ran(&mut self, calls: &[CallId], client: &Client) {
        for told in &mut self.frames {
            let Some(hands) = &told.hands else { continue };
            if hands.calls.iter().any(|call| calls.contains(call)) {
                // No connection has this number.
                told.by = Some(Who { connection: 0, client: client.clone() });
            }
        }
    }
}
