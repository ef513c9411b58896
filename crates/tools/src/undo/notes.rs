//! Notes of what files were before a call changes them, for the case that the daemon dies meanwhile.
//!
//! A note is written before the first change and stays until the turn is over and kept, so at the
//! next start it can be told what became of the files. Like text in flight it survives the death of
//! this process, not of the machine: it is not synced. Tools that change the files they name note those;
//! for commands, a snapshot of everything is put beside where the note would be.
//!
//! A file is written beside its place, under a temporary name, and then takes the place. The folders where
//! that goes on are written down, so that what a crash leaves there is removed at the next start.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, Invocation, ToolOutput};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, TurnId};
use tempfile::{NamedTempFile, TempPath};

use crate::change::{self, Change};
use crate::confined_fs::{self, ConfinedPath, FileData, PathError};

/// Where notes are.
#[derive(Debug)]
pub(crate) struct Notes {
    folder: PathBuf,
    /// Where it is written down which folders are being written to.
    unfinished: PathBuf,
}

/// The note of one call, to be written.
#[derive(Debug)]
pub(crate) struct Note {
    root: PathBuf,
    /// Where it goes; nowhere if the call's names cannot be those of files.
    file: Option<PathBuf>,
    notes: Arc<Notes>,
}

/// A file and what was in it; nothing if it was not there.
type Before = (PathBuf, Option<FileData>);

impl Notes {
    /// Notes below this folder. Removes the temporary files of changes that were cut off.
    pub(super) fn new(cache: &Path) -> Self {
        let unfinished = cache.join("unfinished");
        for entry in fs::read_dir(&unfinished).into_iter().flatten().flatten() {
            let written = fs::read(entry.path()).unwrap_or_default();
            if let Ok((root, folders)) = serde_json::from_slice::<(PathBuf, Vec<PathBuf>)>(&written)
            {
                folders.iter().for_each(|folder| confined_fs::remove_temporary(&root, folder));
            }
            let _gone = fs::remove_file(entry.path());
        }
        Self { folder: cache.join("notes"), unfinished }
    }

    /// The note of a call.
    pub(crate) fn of(self: &Arc<Self>, call: &Invocation) -> Note {
        let (root, file) = (call.workspace.clone(), self.path(&call.turn, &call.call));
        Note { root, file, notes: self.clone() }
    }

    /// Writes down that these files are about to be written, until the result is dropped. Without that
    /// they can be written all the same.
    pub(super) fn begin<'a>(
        &self,
        root: &Path,
        files: impl Iterator<Item = &'a Path>,
    ) -> Option<TempPath> {
        let folders: BTreeSet<_> = files.filter_map(Path::parent).collect();
        let written = || -> io::Result<TempPath> {
            create_private(&self.unfinished)?;
            let note = NamedTempFile::new_in(&self.unfinished)?;
            serde_json::to_writer(&note, &(root, folders))?;
            Ok(note.into_temp_path())
        };
        let failed = |error: &_| tracing::warn!(%error, "cannot note which files are written");
        written().inspect_err(failed).ok()
    }

    /// What became of the files that a call noted; nothing if it noted none.
    pub(super) fn changes(
        &self,
        root: &Path,
        turn: &TurnId,
        call: &CallId,
    ) -> Option<Vec<ChangedFile>> {
        let note = fs::read(self.path(turn, call)?).ok()?;
        let files: Vec<Before> = serde_json::from_slice(&note).ok()?;
        let became = |(path, before): &Before| became(root, path, before.as_ref());
        Some(files.iter().filter_map(became).collect())
    }

    /// Where the note of a call is; nowhere if the call's names cannot be those of files.
    pub(super) fn path(&self, turn: &TurnId, call: &CallId) -> Option<PathBuf> {
        Some(self.turn(turn)?.join(CallId::parse(call.as_str())?.as_str()))
    }

    /// Removes what the calls of a turn noted.
    pub(super) fn remove(&self, turn: &TurnId) {
        let Some(folder) = self.turn(turn) else { return };
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%turn, %error, "the notes of a turn could not be removed");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Ids that were read from a file are not checked by their type, and these become a path.
    fn turn(&self, turn: &TurnId) -> Option<PathBuf> {
        Some(self.folder.join(TurnId::parse(turn.as_str())?.as_str()))
    }
}

impl Note {
    /// Makes changes, which are noted first; gives `done`, or why not, and what became of the files in
    /// either case.
    pub(crate) fn carry_out(&self, changes: &[Change], done: ToolOutput) -> ToolOutput {
        let folders = missing(&self.root, changes).into_iter().map(|folder| (folder, None));
        let sides = changes.iter().flat_map(Change::sides);
        let sides = sides.map(|(path, before)| (path.to_owned(), before.cloned()));
        let files: Vec<Before> = folders.chain(sides).collect();
        // Without a note the change can be made all the same: only if it is cut off, nobody will know.
        if let Some(Err(error)) = self.file.as_deref().map(|file| write(file, &files)) {
            tracing::warn!(%error, "what files were before a call could not be noted");
        }
        let _writing = self.notes.begin(&self.root, files.iter().map(|(path, _)| path.as_path()));
        let mut output = match change::make(&self.root, changes) {
            Ok(()) => done,
            Err(why) => Outcome::failure(why).into(),
        };
        // A change that broke off may have been made, undone or neither.
        let became = |(path, before): &Before| became(&self.root, path, before.as_ref());
        output.changes = files.iter().filter_map(became).collect();
        output
    }
}

/// Writes a note, whole or not at all.
fn write(file: &Path, files: &[Before]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    create_private(folder)?;
    let mut note = BufWriter::new(NamedTempFile::new_in(folder)?);
    serde_json::to_writer(&mut note, files)?;
    note.into_inner().map_err(io::IntoInnerError::into_error)?.persist(file)?;
    Ok(())
}

/// Makes a folder that nobody else can look into, if it is not there.
pub(super) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The folders that will be made for new files.
fn missing(root: &Path, changes: &[Change]) -> BTreeSet<PathBuf> {
    let new = changes.iter().filter(|change| change.after.is_some());
    let around = new.flat_map(|change| change.path.ancestors().skip(1));
    let named = around.filter(|folder| folder.file_name().is_some());
    let missing = named.filter(|folder| {
        let found = root.join(folder).symlink_metadata();
        found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    });
    missing.map(Path::to_owned).collect()
}

/// What became of a file, if that is anything.
fn became(root: &Path, path: &Path, before: Option<&FileData>) -> Option<ChangedFile> {
    let without_body = |shape, size, mode| Some(FileContent { body: None, size, mode, shape });
    let after = match confined_fs::look(root, path) {
        Ok(content) => content.as_ref().map(recorded),
        Err(PathError::Large(_, size)) => without_body(FileKind::File, size, None),
        // A folder may have taken the place of a file or was made for one.
        Err(PathError::Directory(_)) => {
            let stat = ConfinedPath::find(root, path).and_then(|place| place.stat());
            without_body(FileKind::Folder, 0, stat.ok().map(|stat| stat.st_mode & 0o7777))
        }
        // Something else is in its place.
        Err(PathError::Special(_)) => None,
        Err(_) => return None,
    };
    let before = before.map(recorded);
    let path = ConfinedPath::find(root, path).and_then(|place| place.real(root)).ok()?;
    let path = path.to_str()?.to_owned();
    (before != after).then_some(ChangedFile { path, before, after })
}

fn recorded(content: &FileData) -> FileContent {
    let FileData { bytes, mode, shape } = content.clone();
    FileContent { size: bytes.len() as u64, body: Some(BlobBody::Bytes(bytes)), mode, shape }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_of_a_crash_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("work");
        fs::create_dir_all(root.join("a/b")).unwrap();
        for name in ["a/b/.quintet-1-2.tmp", "a/b/c", ".quintet-1-3.tmp", "a/.quintet-1-4.tmp"] {
            fs::write(root.join(name), "").unwrap();
        }
        let notes = Notes::new(dir.path());
        let files = ["a/b/c", "d"].map(Path::new);
        let begun = notes.begin(&root, files.into_iter()).unwrap();
        // As a crash does.
        std::mem::forget(begun);
        Notes::new(dir.path());
        let is_there = |name: &str| root.join(name).exists();
        assert!(is_there("a/b/c") && is_there("a/.quintet-1-4.tmp"));
        assert!(!is_there("a/b/.quintet-1-2.tmp") && !is_there(".quintet-1-3.tmp"));
        assert!(fs::read_dir(notes.unfinished).unwrap().next().is_none());
    }
}
