//! What really became of files, for whoever wants to see it or undo it later.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, ToolOutput};
use quintet_kernel::tool::Outcome;

use super::{Change, Note, make};
use crate::beneath::{self, Error, Place};

/// Makes changes, which are noted first; says `done`, or why not, and what became of the files in
/// either case.
pub(crate) fn carry_out(note: &Note, changes: &[Change], done: ToolOutput) -> ToolOutput {
    let root = &note.root;
    let folders = missing(root, changes);
    note.write(changes, &folders);
    let mut output = match make(root, changes) {
        Ok(()) => done,
        Err(why) => Outcome::failure(why).into(),
    };
    let made = folders.iter().filter_map(|folder| became(root, folder, None));
    output.changes = made.chain(changes.iter().flat_map(|it| recorded(root, it))).collect();
    output
}

/// The folders that will be made for new files.
fn missing(root: &Path, changes: &[Change]) -> Vec<PathBuf> {
    let new = changes.iter().filter(|change| change.after.is_some());
    let around = new.flat_map(|change| change.path.ancestors().skip(1));
    let named = around.filter(|folder| folder.file_name().is_some());
    let missing = named.filter(|folder| {
        let found = root.join(folder).symlink_metadata();
        found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    });
    missing.map(Path::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Looks at the files again: a change that broke off may have been made, undone or neither.
fn recorded(root: &Path, change: &Change) -> Vec<ChangedFile> {
    let sides = change.sides().into_iter();
    sides.filter_map(|(path, before)| became(root, path, before)).collect()
}

/// What became of a file, if that is anything.
pub(super) fn became(
    root: &Path,
    path: &Path,
    before: Option<&beneath::Content>,
) -> Option<ChangedFile> {
    let after = match beneath::look(root, path) {
        Ok(content) => content.as_ref().map(kept),
        Err(Error::Large(_, size)) => {
            Some(FileContent { body: None, size, mode: None, shape: FileKind::File })
        }
        Err(Error::Directory(_)) => Some(folder(root, path)),
        // Something else is in its place.
        Err(Error::Special(_)) => None,
        Err(_) => return None,
    };
    let before = before.map(kept);
    let path = Place::find(root, path).and_then(|place| place.real(root)).ok()?;
    let path = path.to_str()?.to_owned();
    (before != after).then_some(ChangedFile { path, before, after })
}

/// A folder, which may have taken the place of a file or was made for one.
fn folder(root: &Path, path: &Path) -> FileContent {
    let stat = Place::find(root, path).and_then(|place| place.stat());
    let mode = stat.ok().map(|stat| stat.st_mode & 0o7777);
    FileContent { body: None, size: 0, mode, shape: FileKind::Folder }
}

fn kept(content: &beneath::Content) -> FileContent {
    let bytes = content.bytes.clone();
    FileContent {
        size: bytes.len() as u64,
        body: Some(BlobBody::Bytes(bytes)),
        mode: content.mode,
        shape: content.shape,
    }
}
