//! What commands make of files, copied before they write.
//!
//! The kernel asks before a command's call that can change a file goes on (`filter`), in whatever
//! process and thread. The supervisor of the command finds out what the call names (`named`,
//! `real`), keeps what that is (`keeper`), notes it down (`log`) and lets the call go on (`serve`).
//! When the command is over, or at the next start if the daemon is gone by then, what was noted is
//! compared with what is there (`compare`).
//!
//! This costs what a command writes, not what there is. It is a record of what honest programs do, not
//! a wall: a program could swap a name while it is being looked at. The wall is the sandbox.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use quintet_kernel::port::{Invocation, Traces};
use quintet_kernel::{CallId, TurnId};
use serde::{Deserialize, Serialize};

mod compare;
mod filter;
mod hand;
mod keeper;
mod links;
mod log;
mod named;
mod real;
mod serve;

pub(crate) use filter::listen;
pub(crate) use hand::{hand_over, take_over};
pub(crate) use serve::Served;

/// How the names of records end.
const ENDING: &str = "kept";

/// Where a command's files are kept, as the daemon tells the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Where copies and the log go.
    folder: PathBuf,
    /// The real path of the workspace.
    root: PathBuf,
    /// The most that may be kept, in bytes.
    most: u64,
}

/// The records of all calls.
#[derive(Clone, Debug)]
pub(crate) struct Watches {
    folder: PathBuf,
    most: u64,
}

impl Watches {
    /// Records in this folder, which is made when there is something to record, each with at most so
    /// many bytes.
    pub(crate) fn new(folder: PathBuf, most: u64) -> Self {
        Self { folder, most }
    }

    /// Begins the record of a call.
    pub(crate) fn begin(&self, call: &Invocation) -> io::Result<()> {
        let folder = self.of(&call.turn, &call.call).ok_or(ErrorKind::InvalidInput)?;
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        if let Some(turn) = folder.parent() {
            forget_done(turn);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    /// What a command's supervisor is told.
    pub(crate) fn order(&self, call: &Invocation) -> Option<String> {
        let folder = self.of(&call.turn, &call.call).filter(|folder| folder.is_dir())?;
        let root = call.workspace.canonicalize().ok()?;
        // If nothing more comes after this, the record was lost.
        log::create(&folder).ok()?;
        serde_json::to_string(&Order { folder, root, most: self.most }).ok()
    }

    /// What became of files by a call; nothing if there is no record of it. Waits until its supervisor
    /// is gone.
    pub(crate) fn traces(&self, root: &Path, turn: &TurnId, call: &CallId) -> Option<Traces> {
        let folder = self.of(turn, call).filter(|folder| folder.is_dir())?;
        Some(compare::compare(root, &folder, self.most))
    }

    /// Ids that were read from a file are not checked by their type, and these become a path.
    fn of(&self, turn: &TurnId, call: &CallId) -> Option<PathBuf> {
        let (turn, call) = (TurnId::parse(turn.as_str())?, CallId::parse(call.as_str())?);
        Some(self.folder.join(turn.as_str()).join(format!("{call}.{ENDING}")))
    }
}

/// Forgets the records of a turn's earlier calls: a call begins when what came of those before it is
/// kept, so nobody will ask for them again.
fn forget_done(turn: &Path) {
    let folders = fs::read_dir(turn).into_iter().flatten().flatten().map(|entry| entry.path());
    let records = folders.filter(|path| path.extension().is_some_and(|end| end == ENDING));
    for record in records.filter(|record| log::is_done(record)) {
        if let Err(error) = fs::remove_dir_all(&record) {
            tracing::warn!(%error, "the record of a call could not be removed");
        }
    }
}
