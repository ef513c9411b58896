//! Undo: records what calls do to files, shows the changes as one diff, and reverts them.
//!
//! ```text
//! command:    snapshot ── run ── snapshot ── compare ──► changes of the call
//! file tool:  log entry ── run ── compare            ──► changes of the call
//! turn:       changes of its calls ──► diff, revert, and revert of the revert
//! ```
//!
//! A [snapshot] lists the files that git does not ignore, each with its stat and where its content is.
//! The next [scan] costs one `lstat` per file and reads only files whose stat changed. Content is in a
//! [pack] in the cache folder, or in the repository's own objects if git has it ([`git_objects`]).
//! Changes that snapshots do not cover are reported ([`uncovered`]): those of files that git ignores, of
//! git's own files, of files over [`FILE_LIMIT`] and of names that are not UTF-8.
//!
//! The snapshot before a command is on disk while the command runs, so its changes are known after a
//! crash ([`undo_log`]). All changes while a command runs are attributed to it, whoever made them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{ChangedFile, InterruptedChanges, RevertMode};
use quintet_kernel::{CallId, TurnId};
use tokio::task::{JoinError, spawn_blocking};

use crate::run::Runner;
use crate::{blocking, diff};

mod compare;
mod current;
mod git_objects;
mod ignore_rules;
mod pack;
mod recorder;
mod revert;
mod scan;
mod snapshot;
mod store;
mod uncovered;
mod undo_log;

pub(crate) use recorder::Recorded;
use store::{Base, Snapshots};
pub(crate) use undo_log::{LogEntry, UndoLog};

/// The largest number of files in a workspace.
const FILES_LIMIT: usize = 100_000;
/// The largest file whose content is stored, in bytes.
const FILE_LIMIT: u64 = 10 * 1024 * 1024;
/// The most content that is stored for a workspace, in bytes.
const CONTENT_LIMIT: u64 = 1024 * 1024 * 1024;
/// How many bytes of a pack may be unused, in addition to as many as are used.
const WASTE_LIMIT: u64 = 128 * 1024 * 1024;

/// File changes, and changes that could not be recorded.
type Record = InterruptedChanges;

/// Why the changes of a command are not recorded.
#[derive(Debug, thiserror::Error)]
enum Unrecorded {
    #[error("the workspace has more than {FILES_LIMIT} files that git does not ignore")]
    TooManyFiles,
    #[error("the files of the workspace are larger than {} MiB", CONTENT_LIMIT >> 20)]
    TooLarge,
    #[error("the cache folder cannot be used: {0}")]
    Cache(#[from] io::Error),
    #[error("the workspace cannot be read: {0}")]
    Workspace(io::Error),
    #[error("{0}")]
    EarlierInTurn(String),
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

/// Records, shows and reverts changes.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    pub(crate) log: Arc<UndoLog>,
    snapshots: Arc<Snapshots>,
    /// Runs git.
    runner: Arc<Runner>,
    /// A folder for temporary files.
    cache: PathBuf,
}

impl Undo {
    /// Stores its data in `cache`.
    pub(crate) fn new(runner: Arc<Runner>, cache: PathBuf) -> Self {
        let log = Arc::new(UndoLog::new(&cache));
        let snapshots = Arc::new(Snapshots::new(cache.clone()));
        Self { log, snapshots, runner, cache }
    }

    /// Changes as one unified diff.
    pub(crate) async fn diff(&self, workspace: &Path, mut changes: Vec<ChangedFile>) -> String {
        let _objects = git_objects::fill(&self.runner, workspace, &self.cache, &mut changes).await;
        let shown = spawn_blocking(move || diff::diff(&changes)).await;
        shown.unwrap_or_else(|error| format!("the changes cannot be shown: {error}\n"))
    }

    /// Reverts every file, or none.
    ///
    /// # Errors
    /// If a file is neither as the changes left it nor as it was before. The reason names each file.
    pub(crate) async fn revert(
        &self,
        root: PathBuf,
        mut changes: Vec<ChangedFile>,
        mode: RevertMode,
    ) -> Result<(), String> {
        let objects = git_objects::fill(&self.runner, &root, &self.cache, &mut changes).await;
        let work = move || {
            let _in_use = objects;
            revert::revert(&root, &changes, mode)
        };
        blocking::run_to_end(work).await
    }

    /// The changes of a call that was interrupted by a crash; `None` if it had not begun.
    pub(crate) async fn interrupted(
        self,
        root: PathBuf,
        turn: TurnId,
        call: CallId,
    ) -> Option<Record> {
        let work = move || {
            let entry = self.log.path(&turn, &call)?;
            if let Some(changes) = undo_log::changes(&entry) {
                return Some(Record { changes, unrecorded: Vec::new() });
            }
            let base = Base::load(&entry)?;
            let root = root.canonicalize().ok()?;
            let record = self.snapshots.workspace(&root).and_then(|it| it.since(&root, &base));
            Some(record.unwrap_or_else(recorder::nothing))
        };
        spawn_blocking(work).await.ok()?
    }

    /// Removes what was stored for the case that a call of the turn is interrupted.
    pub(crate) fn turn_ended(&self, turn: &TurnId) {
        self.log.remove(turn);
    }
}

#[cfg(test)]
mod tests;
