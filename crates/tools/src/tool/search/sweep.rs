//! Searches files side by side. What is found is told in the order of the files, as if one had been
//! searched after the other.
//!
//! Whoever walks hands over the files in batches, and searches one itself where the others do not keep
//! up. A batch is told as soon as all before it are, so that little is held of what need not be told.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, available_parallelism};

use crate::hits::Tally;

/// How many files are searched at once by one.
const BATCH: usize = 32;
/// More threads than this would only wait for each other.
const MOST_THREADS: usize = 8;
/// How many batches may wait for each thread.
const AHEAD: usize = 4;

/// Searches files in order, and shows at most so many matches.
pub(super) trait Search {
    fn search(&mut self, files: &[PathBuf], most: usize) -> Tally;
}

/// A search of many files.
#[derive(Debug)]
pub(super) struct Sweep {
    state: Mutex<State>,
    news: Condvar,
    threads: usize,
}

#[derive(Debug)]
struct State {
    /// Files that are not yet a batch.
    files: Vec<PathBuf>,
    waiting: VecDeque<Batch>,
    /// Batches that were searched before those in front of them.
    early: BTreeMap<usize, (Batch, Tally)>,
    sum: Tally,
    /// How many batches there were, and how many of them were added up.
    made: usize,
    told: usize,
    /// Whether there will be no more.
    closed: bool,
}

#[derive(Debug)]
struct Batch {
    number: usize,
    files: Vec<PathBuf>,
}

impl Sweep {
    /// Shows at most so many matches.
    pub(super) fn new(most: usize) -> Self {
        let state = State {
            files: Vec::with_capacity(BATCH),
            waiting: VecDeque::new(),
            early: BTreeMap::new(),
            sum: Tally::new(most),
            made: 0,
            told: 0,
            closed: false,
        };
        let threads = available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        Self { state: Mutex::new(state), news: Condvar::new(), threads }
    }

    /// Takes a file, the next in order. Others begin to help when there is enough for two.
    pub(super) fn take<'scope, S: Search>(
        &'scope self,
        file: PathBuf,
        own: &mut S,
        scope: &'scope Scope<'scope, '_>,
        helper: impl Fn() -> S + Copy + Send + 'scope,
    ) {
        let mut state = self.lock();
        state.files.push(file);
        if state.files.len() < BATCH {
            return;
        }
        state.hand_over();
        let (made, waiting) = (state.made, state.waiting.len());
        drop(state);
        self.news.notify_one();
        if made == 2 {
            for _ in 1..self.threads {
                // Who cannot be had is not needed.
                let _helps = Builder::new().spawn_scoped(scope, move || self.help(&mut helper()));
            }
        }
        if made > 1 && waiting > (self.threads - 1) * AHEAD {
            self.one(own);
        }
    }

    /// Searches what is left; there is no more to come.
    pub(super) fn finish(&self, own: &mut impl Search) {
        let mut state = self.lock();
        state.hand_over();
        state.closed = true;
        drop(state);
        self.news.notify_all();
        self.help(own);
    }

    /// What was found, once everybody is done.
    pub(super) fn sum(self) -> Tally {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).sum
    }

    fn help(&self, hands: &mut impl Search) {
        while self.is_more() {
            self.one(hands);
        }
    }

    /// Waits until there is something to do; whether there is.
    fn is_more(&self) -> bool {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.closed {
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.waiting.is_empty()
    }

    /// Searches a batch, if one waits.
    fn one(&self, hands: &mut impl Search) {
        let mut state = self.lock();
        let (batch, room) = (state.waiting.pop_front(), state.sum.room());
        drop(state);
        if let Some(batch) = batch {
            // What is told before it can only leave less room.
            let found = hands.search(&batch.files, room);
            self.lock().tell(batch, found, hands);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hand_over(&mut self) {
        if !self.files.is_empty() {
            let files = std::mem::replace(&mut self.files, Vec::with_capacity(BATCH));
            self.waiting.push_back(Batch { number: self.made, files });
            self.made += 1;
        }
    }

    /// Adds up what comes next.
    fn tell(&mut self, batch: Batch, found: Tally, hands: &mut impl Search) {
        self.early.insert(batch.number, (batch, found));
        while let Some((batch, found)) = self.early.remove(&self.told) {
            let room = self.sum.room();
            // Where some of it is to be shown, which happens once, it is found again.
            let fits = room == 0 || found.shown() <= room;
            self.sum.join(if fits { found } else { hands.search(&batch.files, room) });
            self.told += 1;
        }
    }
}
