//! The turns of a session in the order of their messages, indexed by id and by key.

use std::collections::{BTreeSet, HashMap};
use std::ops::Index;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::TurnId;
use crate::session::turn::{Turn, TurnStatus};
use crate::time::Time;

/// The turns of a session. A copy shares them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Turn>", into = "Vec<Arc<Turn>>")]
pub struct TurnList {
    turns: Vec<Arc<Turn>>,
    by_id: HashMap<TurnId, usize>,
    by_key: HashMap<String, usize>,
    /// The turns that start automatically after those before them.
    queued: BTreeSet<usize>,
    /// The newest turn that ever started.
    last_started: Option<usize>,
}

impl TurnList {
    /// All turns, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Turn> + ExactSizeIterator {
        self.turns.iter().map(|turn| &**turn)
    }

    /// The newest turn.
    pub fn last(&self) -> Option<&Turn> {
        self.turns.last().map(|turn| &**turn)
    }

    /// The newest turn that ever started.
    pub(crate) fn last_started(&self) -> Option<&Turn> {
        self.last_started.map(|n| &*self.turns[n])
    }

    /// Number of turns.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// True before the first message of a session.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The turn of that id.
    pub fn find(&self, id: &TurnId) -> Option<&Turn> {
        self.position(id).map(|n| &*self.turns[n])
    }

    /// The index of a turn, counted from 0.
    pub(crate) fn position(&self, id: &TurnId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The turn of the message with this key.
    pub(super) fn turn_by_key(&self, key: &str) -> Option<&Turn> {
        self.by_key.get(key).map(|n| &*self.turns[*n])
    }

    /// The first queued turn.
    pub(super) fn next_queued(&self) -> Option<&Turn> {
        self.queued.first().map(|n| &*self.turns[*n])
    }

    pub(super) fn push(&mut self, turn: Turn) {
        let n = self.turns.len();
        self.by_id.insert(turn.id.clone(), n);
        if let Some(key) = &turn.options.key {
            self.by_key.insert(key.clone(), n);
        }
        self.turns.push(Arc::new(turn));
        self.note_status(n);
    }

    /// Changes the turn of that id, if there is one.
    pub(super) fn change(&mut self, id: &TurnId, change: impl FnOnce(&mut Turn)) {
        if let Some(n) = self.position(id) {
            change(Arc::make_mut(&mut self.turns[n]));
            self.note_status(n);
        }
    }

    /// Marks the turns from an index on as replaced.
    pub(super) fn supersede(&mut self, first: usize) {
        for turn in self.turns.iter_mut().skip(first) {
            let turn = Arc::make_mut(turn);
            turn.superseded = true;
            turn.read.clear();
        }
    }

    /// Cancels every queued turn.
    pub(super) fn cancel_queued(&mut self, at: Time) {
        for n in std::mem::take(&mut self.queued) {
            let turn = Arc::make_mut(&mut self.turns[n]);
            turn.status = TurnStatus::Cancelled;
            turn.completed = Some(at);
        }
    }

    fn note_status(&mut self, n: usize) {
        let turn = &self.turns[n];
        if turn.started.is_some() {
            self.last_started = self.last_started.max(Some(n));
        }
        if turn.options.queued && turn.status == TurnStatus::Pending {
            self.queued.insert(n);
        } else {
            self.queued.remove(&n);
        }
    }
}

impl From<Vec<Turn>> for TurnList {
    fn from(turns: Vec<Turn>) -> Self {
        let mut list = Self::default();
        turns.into_iter().for_each(|turn| list.push(turn));
        list
    }
}

impl From<TurnList> for Vec<Arc<Turn>> {
    fn from(list: TurnList) -> Self {
        list.turns
    }
}

impl Index<usize> for TurnList {
    type Output = Turn;

    fn index(&self, n: usize) -> &Turn {
        &self.turns[n]
    }
}
