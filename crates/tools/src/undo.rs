//! Undo: what calls do to files is recorded, shown as one diff, and turned back.
//!
//! ```text
//! command:    snapshot ── runs ── snapshot ── compare ──► changes and gaps of the call
//! file tool:  note     ── runs ── look again           ──► changes of the call
//! turn:       changes of its calls ──► diff, revert, and revert of the revert
//! ```
//!
//! A [snapshot] lists the files that git would not ignore, each with its stat and where its content is.
//! Taking the next one costs one `lstat` a file; only a file whose stat changed is read ([`take`]).
//! Content lies in a [pack] in the cache folder, or in the repository's own objects where git says that
//! the file is as it was committed or staged ([`git_objects`]). What snapshots do not cover is named in
//! the record ([`uncovered`]): what git ignores, git's own files, files over [`FILE_LIMIT`], and names
//! that are not UTF-8.
//!
//! The snapshot before a command is on disk while the command runs, so that after a crash the difference
//! can still be told ([`notes`]). Whatever changes while a command runs is taken for its work, even if
//! somebody else did it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::change::UnrecordedChange;
use quintet_kernel::port::{ChangedFile, InterruptedChanges, RevertMode};
use quintet_kernel::{CallId, TurnId};
use tokio::task::spawn_blocking;

use crate::run::Runner;
use crate::{blocking, diff};

mod compare;
mod current;
mod git_objects;
mod ignore_rules;
mod notes;
mod pack;
mod recorder;
mod revert;
mod snapshot;
mod store;
mod take;
mod uncovered;

pub(crate) use notes::{Note, Notes};
pub(crate) use recorder::Recorded;
use store::{Base, Snapshots};

/// The most files of a workspace.
const FILES_LIMIT: usize = 100_000;
/// The longest file whose content is kept, in bytes.
const FILE_LIMIT: u64 = 10 * 1024 * 1024;
/// The most content of a workspace that is kept, in bytes.
const CONTENT_LIMIT: u64 = 1024 * 1024 * 1024;
/// How much of a pack may be of no use any more, beside as much as is of use.
const WASTE_LIMIT: u64 = 128 * 1024 * 1024;

/// What became of files, and what may have happened beside that.
type Record = InterruptedChanges;

/// Why changes are not recorded.
#[derive(Debug, thiserror::Error)]
enum Unrecorded {
    #[error("the workspace has more than {FILES_LIMIT} files that git does not ignore")]
    Many,
    #[error("the files of the workspace are more than {} MiB", CONTENT_LIMIT >> 20)]
    Large,
    #[error("the cache folder cannot be used: {0}")]
    Cache(#[from] io::Error),
    #[error("{0}")]
    Workspace(String),
    #[error("cancelled")]
    Cancelled,
}

/// Records, shows and turns back changes.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    /// What calls began with that may be cut off.
    pub(crate) notes: Arc<Notes>,
    snapshots: Arc<Snapshots>,
    /// Runs git.
    runner: Arc<Runner>,
    /// A folder for temporary files.
    cache: PathBuf,
}

impl Undo {
    /// Keeps what it needs in this folder.
    pub(crate) fn new(runner: Arc<Runner>, cache: PathBuf) -> Self {
        let notes = Arc::new(Notes::new(&cache));
        let snapshots = Arc::new(Snapshots::new(cache.join("snapshots")));
        Self { notes, snapshots, runner, cache }
    }

    /// Changes as one unified diff.
    pub(crate) async fn diff(&self, workspace: &Path, mut changes: Vec<ChangedFile>) -> String {
        let _objects = git_objects::fill(&self.runner, workspace, &self.cache, &mut changes).await;
        let shown = spawn_blocking(move || diff::diff(&changes)).await;
        shown.unwrap_or_else(|error| format!("the changes cannot be shown: {error}\n"))
    }

    /// Turns every file back, or none.
    ///
    /// # Errors
    /// Why not, with the names of the files that are in the way.
    pub(crate) async fn revert(
        &self,
        root: PathBuf,
        mut changes: Vec<ChangedFile>,
        run: RevertMode,
    ) -> Result<(), String> {
        let objects = git_objects::fill(&self.runner, &root, &self.cache, &mut changes).await;
        let notes = self.notes.clone();
        let work = move || {
            let _needed = (notes.revert(&root, &changes), objects);
            revert::revert(&root, &changes, run)
        };
        blocking::run_to_end(work).await
    }

    /// What became of files by a call that was cut off; nothing if it noted nothing.
    pub(crate) async fn cut_off(self, root: PathBuf, turn: TurnId, call: CallId) -> Option<Record> {
        let looking = spawn_blocking(move || {
            let note = self.notes.path(&turn, &call)?;
            if let Some(changes) = notes::changes(&note) {
                return Some(Record { changes, unrecorded: Vec::new() });
            }
            let base = Base::saved(&note)?;
            let root = root.canonicalize().ok()?;
            let record = self.snapshots.workspace(&root).since(&root, &base);
            Some(record.unwrap_or_else(|why| Record {
                changes: Vec::new(),
                unrecorded: vec![everywhere(why.to_string())],
            }))
        });
        looking.await.ok()?
    }

    /// Removes what the calls of a turn noted, which is over.
    pub(crate) fn turn_over(&self, turn: &TurnId) {
        self.notes.remove(turn);
    }
}

/// Says that nothing is recorded.
fn everywhere(reason: String) -> UnrecordedChange {
    UnrecordedChange { path: String::new(), paths: None, reason }
}

#[cfg(test)]
mod tests;
