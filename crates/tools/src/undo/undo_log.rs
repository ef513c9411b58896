//! The undo log: the state of files before calls change them, in case the daemon is killed meanwhile.
//!
//! An entry is written before the first change of a call and stays until the turn has ended and is
//! stored, so the next start can find out what the call changed. For a file tool it holds the former
//! content of the files. For a command, a snapshot is put next to where the entry would be. Entries are
//! not synced: they survive a crash of the process, not a power failure.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::{self, BufReader, BufWriter, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use quintet_kernel::port::{ChangedFile, FileContent, Invocation, ToolOutput};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, TurnId};
use serde::Serialize;
use tempfile::NamedTempFile;

use super::current::current;
use crate::change::{self, Change};
use crate::confined_fs::{ConfinedPath, FileData};

/// The log: a folder for each turn, a file for each call.
#[derive(Debug)]
pub(crate) struct UndoLog {
    folder: PathBuf,
}

/// The entry of one call of a file tool.
#[derive(Debug)]
pub(crate) struct LogEntry {
    root: PathBuf,
    /// `None` if the ids of the call cannot be used as file names.
    file: Option<PathBuf>,
}

/// A path and the file there before a change; `None` if there was none.
type Before = (PathBuf, Option<FileData>);

impl UndoLog {
    pub(super) fn new(cache: &Path) -> Self {
        Self { folder: cache.join("notes") }
    }

    /// The entry of a call, to be written.
    pub(crate) fn entry(&self, call: &Invocation) -> LogEntry {
        LogEntry { root: call.workspace.clone(), file: self.path(&call.turn, &call.call) }
    }

    /// The path of an entry; `None` if the ids of the call cannot be used as file names.
    pub(super) fn path(&self, turn: &TurnId, call: &CallId) -> Option<PathBuf> {
        Some(self.turn(turn)?.join(CallId::parse(call.as_str())?.as_str()))
    }

    /// Removes the entries of a turn.
    pub(super) fn remove(&self, turn: &TurnId) {
        let Some(folder) = self.turn(turn) else { return };
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%turn, %error, "could not remove the undo log of a turn");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Ids that were read from a file are not checked by their type, and these become a path.
    fn turn(&self, turn: &TurnId) -> Option<PathBuf> {
        Some(self.folder.join(TurnId::parse(turn.as_str())?.as_str()))
    }
}

impl LogEntry {
    /// Writes the entry and makes the changes. The output is `done` or the failure, with the changes
    /// that were made in either case.
    pub(crate) fn carry_out(&self, changes: &[Change], done: ToolOutput) -> ToolOutput {
        let folders = missing_folders(&self.root, changes).into_iter().map(|it| (it, None));
        let sides = changes.iter().flat_map(Change::sides);
        let sides = sides.map(|(path, before)| (path.to_owned(), before.cloned()));
        let files: Vec<Before> = folders.chain(sides).collect();
        if let Some(file) = &self.file
            && let Err(error) = write_json(file, &(&self.root, &files))
        {
            tracing::warn!(%error, "could not write the undo log; a crash would lose this change");
        }
        let mut output = match change::make(&self.root, changes) {
            Ok(()) => done,
            Err(why) => Outcome::failure(why).into(),
        };
        // A failed change may have been made, undone or neither.
        output.changes = differences(&self.root, files);
        output
    }
}

/// The changes since an entry was written; `None` if there is none.
pub(super) fn changes(entry: &Path) -> Option<Vec<ChangedFile>> {
    let file = BufReader::new(fs::File::open(entry).ok()?);
    let (root, files): (PathBuf, _) = serde_json::from_reader(file).ok()?;
    Some(differences(&root, files))
}

/// Writes a file, whole or not at all. Hard links to the former file keep the former content.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    create_private(folder)?;
    let mut file = BufWriter::new(NamedTempFile::new_in(folder)?);
    serde_json::to_writer(&mut file, value)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.persist(path)?;
    Ok(())
}

/// Creates a folder that other users cannot read, if it does not exist.
pub(super) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The folders that will be created for new files.
fn missing_folders(root: &Path, changes: &[Change]) -> BTreeSet<PathBuf> {
    let new = changes.iter().filter(|change| change.after.is_some());
    let parents = new.flat_map(|change| change.path.ancestors().skip(1));
    let is_missing = |folder: &&Path| {
        let found = root.join(folder).symlink_metadata();
        folder.file_name().is_some() && found.is_err_and(|it| it.kind() == ErrorKind::NotFound)
    };
    parents.filter(is_missing).map(Path::to_owned).collect()
}

/// The files that are not as they were before.
fn differences(root: &Path, files: Vec<Before>) -> Vec<ChangedFile> {
    let difference = |(path, before): Before| {
        let path = ConfinedPath::find(root, &path).and_then(|it| it.real(root)).ok()?;
        let after = current(root, &path).ok()?.and_then(|now| now.record().transpose());
        let (before, after) = (before.map(FileContent::from), after.transpose().ok()?);
        let path = path.to_str()?.to_owned();
        (before != after).then_some(ChangedFile { path, before, after })
    };
    files.into_iter().filter_map(difference).collect()
}
