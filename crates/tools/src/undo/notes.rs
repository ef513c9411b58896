//! Notes of what files were before they are changed, for the case that the daemon dies meanwhile.
//!
//! A note is written before the first change. That of a call stays until the turn is over and kept, so at
//! the next start it can be told what became of the files; that of an undo stays until it is done. Like
//! text in flight it survives the death of this process, not of the machine: it is not synced. For
//! commands, a snapshot of everything is put beside where the note would be.
//!
//! A file is written beside its place, under a temporary name, and then takes the place. What a crash
//! leaves of that in the folders of noted files is removed at the next start.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::{self, BufReader, BufWriter, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use quintet_kernel::port::{ChangedFile, FileContent, Invocation, ToolOutput};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, TurnId};
use tempfile::{NamedTempFile, TempPath};

use super::current::current;
use crate::change::{self, Change};
use crate::confined_fs::{self, ConfinedPath, FileData};

/// Where notes are: a folder for each turn.
#[derive(Debug)]
pub(crate) struct Notes {
    folder: PathBuf,
    /// The notes of undos.
    reverts: PathBuf,
}

/// The note of one call, to be written.
#[derive(Debug)]
pub(crate) struct Note {
    root: PathBuf,
    /// Where it goes; nowhere if the call's names cannot be those of files.
    file: Option<PathBuf>,
}

/// A file and what was in it; nothing if it was not there.
type Before = (PathBuf, Option<FileData>);

impl Notes {
    /// Notes below this folder. Removes the temporary files of changes that were cut off.
    pub(super) fn new(cache: &Path) -> Self {
        let (folder, reverts) = (cache.join("notes"), cache.join("unfinished"));
        let turns = fs::read_dir(&folder).into_iter().flatten().flatten().map(|it| it.path());
        let notes = turns.chain([reverts.clone()]).flat_map(fs::read_dir).flatten().flatten();
        for (root, files) in notes.filter_map(|note| read(&note.path())) {
            let folders: BTreeSet<_> = files.iter().filter_map(|(file, _)| file.parent()).collect();
            folders.iter().for_each(|folder| confined_fs::remove_temporary(&root, folder));
        }
        let _none = fs::remove_dir_all(&reverts);
        Self { folder, reverts }
    }

    /// The note of a call.
    pub(crate) fn of(&self, call: &Invocation) -> Note {
        Note { root: call.workspace.clone(), file: self.path(&call.turn, &call.call) }
    }

    /// Notes that these files are about to be written by an undo, until the result is dropped.
    pub(super) fn revert(&self, root: &Path, changes: &[ChangedFile]) -> Option<TempPath> {
        let files: Vec<Before> = changes.iter().map(|it| (PathBuf::from(&it.path), None)).collect();
        let written = write(&self.reverts, root, &files).inspect_err(unnoted);
        written.ok().map(NamedTempFile::into_temp_path)
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
        if let Some(file) = &self.file {
            let written = write(file.parent().unwrap_or(file), &self.root, &files);
            let noted = written.and_then(|note| Ok(note.persist(file)?));
            let _unnoted = noted.inspect_err(unnoted);
        }
        let mut output = match change::make(&self.root, changes) {
            Ok(()) => done,
            Err(why) => Outcome::failure(why).into(),
        };
        // A change that broke off may have been made, undone or neither.
        output.changes = became(&self.root, files);
        output
    }
}

/// What became of the files that were noted in a file; nothing if there is no note.
pub(super) fn changes(note: &Path) -> Option<Vec<ChangedFile>> {
    let (root, files) = read(note)?;
    Some(became(&root, files))
}

/// Writes a note under a temporary name.
fn write(folder: &Path, root: &Path, files: &[Before]) -> io::Result<NamedTempFile> {
    create_private(folder)?;
    let mut note = BufWriter::new(NamedTempFile::new_in(folder)?);
    serde_json::to_writer(&mut note, &(root, files))?;
    note.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Reads a note: the workspace, and the files in it. Snapshots are no notes, and long.
fn read(note: &Path) -> Option<(PathBuf, Vec<Before>)> {
    let is_snapshot = note.extension().is_some_and(|it| it == "index" || it == "pack");
    let file = (!is_snapshot).then(|| fs::File::open(note))?.ok()?;
    serde_json::from_reader(BufReader::new(file)).ok()
}

/// Without a note files can be changed all the same: only if that is cut off, nobody will know.
fn unnoted(error: &io::Error) {
    tracing::warn!(%error, "what files were before a change could not be noted");
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

/// What became of files, of those that changed.
fn became(root: &Path, files: Vec<Before>) -> Vec<ChangedFile> {
    let one = |(path, before): Before| {
        let path = ConfinedPath::find(root, &path).and_then(|place| place.real(root)).ok()?;
        let after = current(root, &path).ok()?.and_then(|now| now.record().transpose());
        let (before, after) = (before.map(FileContent::from), after.transpose().ok()?);
        let path = path.to_str()?.to_owned();
        (before != after).then_some(ChangedFile { path, before, after })
    };
    files.into_iter().filter_map(one).collect()
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
        let change = |path: &str| ChangedFile { path: path.to_owned(), before: None, after: None };
        let begun = notes.revert(&root, &["a/b/c", "d"].map(change)).unwrap();
        // As a crash does.
        std::mem::forget(begun);
        Notes::new(dir.path());
        let is_there = |name: &str| root.join(name).exists();
        assert!(is_there("a/b/c") && is_there("a/.quintet-1-4.tmp"));
        assert!(!is_there("a/b/.quintet-1-2.tmp") && !is_there(".quintet-1-3.tmp"));
        assert!(!notes.reverts.exists());
    }
}
