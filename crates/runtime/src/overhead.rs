//! Keeps what the daemon added to the time of recent turns.

use std::collections::VecDeque;
use std::sync::Mutex;

use quintet_kernel::port::{TurnOverhead, TurnOverheads};

use crate::runtime::{Runtime, lock};

/// Turns of which the overhead is kept; an older one is dropped for each new one.
const RECENT_TURNS_LIMIT: usize = 256;

/// The overhead of recent turns, oldest first. In memory only: the figures describe this process.
#[derive(Debug, Default)]
pub(crate) struct RecentOverheads(Mutex<VecDeque<TurnOverhead>>);

impl RecentOverheads {
    pub(crate) fn add(&self, turn: TurnOverhead) {
        let mut turns = lock(&self.0);
        if turns.len() == RECENT_TURNS_LIMIT {
            turns.pop_front();
        }
        turns.push_back(turn);
    }
}

impl TurnOverheads for Runtime {
    fn recent_turns(&self) -> Vec<TurnOverhead> {
        lock(&self.shared().overheads.0).iter().copied().collect()
    }
}
