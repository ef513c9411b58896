//! What commands make of a workspace: its files are looked at before and after.
//!
//! A snapshot is a list of files, each with its [`Signature`], and a copy of what was in them. Of what
//! git ignores, much is left alone ([`ignored`]), which is said where it seems to have changed
//! ([`unseen`]). Looking again costs one `lstat` a file; only what has another signature
//! is read. The copies lie in a [pack](pack): one file without a name in the cache folder, so there is
//! nothing to clean up, to lock or to trust after a crash; what the daemon forgets, it copies again
//! before the next command. This is done here and not by a private git repository because that
//! would start four programs for every command, write one compressed file for every file at first,
//! and not work without git.
//!
//! Whatever changes while a command runs is taken for its work, even if somebody else did it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::TurnId;
use quintet_kernel::change::Gap;
use quintet_kernel::port::Changed;

use crate::blocking::Flag;

mod compare;
mod ignored;
mod index;
mod pack;
mod scan;
mod signature;
mod unseen;

pub(crate) use ignored::is_made;
use index::Index;
use signature::Signature;

/// How many workspaces are remembered; the others are copied anew when they are worked in again.
const MOST_WORKSPACES: usize = 4;

/// The snapshots of all workspaces.
#[derive(Debug)]
pub(crate) struct Snapshots {
    /// Where packs are made.
    folder: PathBuf,
    /// The last used is the last.
    shelves: Mutex<Vec<Arc<Shelf>>>,
}

/// What is remembered of one workspace.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// The real path.
    workspace: PathBuf,
    /// Held while the workspace is looked at, so that two calls do not do the same work twice.
    newest: Mutex<Option<Arc<Index>>>,
    told: Mutex<Told>,
}

/// What was said of a workspace in the turn that last worked in it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    turn: Option<TurnId>,
    /// Why nothing is recorded; then there is no need to try again in that turn.
    pub(crate) trouble: Option<String>,
    /// The folders of which it knows that they are not recorded.
    pub(crate) folders: HashSet<String>,
}

/// A workspace before something happened to it.
#[derive(Debug)]
pub(crate) struct Base {
    shelf: Arc<Shelf>,
    index: Arc<Index>,
}

/// What became of files, and what is to be said about that.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) changes: Vec<Changed>,
    /// What may have happened beside that.
    pub(crate) gaps: Vec<Gap>,
    /// What the model should know.
    pub(crate) note: Option<String>,
}

/// Why changes are not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unrecorded {
    #[error("the workspace has more than {} files", scan::MOST_FILES)]
    Many,
    #[error("the files of the workspace are more than {} MiB", scan::MOST_BYTES >> 20)]
    Large,
    #[error("the cache folder cannot be used: {0}")]
    Pack(#[from] std::io::Error),
    #[error("{0}")]
    Workspace(String),
    #[error("cancelled")]
    Cancelled,
}

impl Snapshots {
    /// Snapshots whose copies lie in this folder, which is made when there is something to copy.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, shelves: Mutex::default() }
    }

    /// What is remembered of a workspace.
    pub(crate) fn shelf(&self, workspace: &Path) -> Result<Arc<Shelf>, Unrecorded> {
        let real = workspace.canonicalize();
        let workspace = real.map_err(|error| Unrecorded::Workspace(error.to_string()))?;
        let mut shelves = lock(&self.shelves);
        let found = shelves.iter().position(|shelf| shelf.workspace == workspace);
        let shelf = match found {
            Some(at) => shelves.remove(at),
            None => Arc::new(Shelf { workspace, newest: Mutex::default(), told: Mutex::default() }),
        };
        shelves.push(shelf.clone());
        if shelves.len() > MOST_WORKSPACES {
            shelves.remove(0);
        }
        Ok(shelf)
    }

    /// Looks at a workspace before something happens to it.
    pub(crate) fn before(&self, shelf: Arc<Shelf>, flag: &Flag) -> Result<Base, Unrecorded> {
        let index = self.look(&shelf, flag)?;
        Ok(Base { shelf, index })
    }

    /// Finds out what happened to a workspace.
    pub(crate) fn since(&self, base: &Base) -> Result<Record, Unrecorded> {
        let now = self.look(&base.shelf, &Flag::default())?;
        Ok(compare::compare(&base.shelf.workspace, &base.index, &now))
    }

    fn look(&self, shelf: &Shelf, flag: &Flag) -> Result<Arc<Index>, Unrecorded> {
        let mut newest = lock(&shelf.newest);
        let old = newest.clone().filter(|old| !old.is_wasteful());
        let new = Arc::new(scan::scan(&shelf.workspace, &self.folder, old.as_deref(), flag)?);
        *newest = Some(new.clone());
        Ok(new)
    }
}

impl Shelf {
    /// What was said in this turn; nothing if it is another than the last.
    pub(crate) fn told(&self, turn: &TurnId) -> MutexGuard<'_, Told> {
        let mut told = lock(&self.told);
        if told.turn.as_ref() != Some(turn) {
            *told = Told { turn: Some(turn.clone()), ..Told::default() };
        }
        told
    }
}

/// What is behind these locks is whole even if somebody panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
