//! What really became of files, for whoever wants to see it or undo it later.

use std::path::Path;

use quintet_kernel::change::Shape;
use quintet_kernel::port::{Changed, Content, Output};
use quintet_kernel::tool::Outcome;

use super::{Change, Note, make};
use crate::beneath::{self, Error, Place};

/// Makes changes, which are noted first; says `done`, or why not, and what became of the files in
/// either case.
pub(crate) fn carry_out(note: &Note, changes: &[Change], done: Output) -> Output {
    let root = &note.root;
    note.write(changes);
    let mut output = match make(root, changes) {
        Ok(()) => done,
        Err(why) => Outcome::failure(why).into(),
    };
    output.changes = changes.iter().flat_map(|change| recorded(root, change)).collect();
    output
}

/// Looks at the files again: a change that broke off may have been made, undone or neither.
fn recorded(root: &Path, change: &Change) -> Vec<Changed> {
    let sides = change.sides().into_iter();
    sides.filter_map(|(path, before)| became(root, path, before)).collect()
}

/// What became of a file, if that is anything.
pub(super) fn became(
    root: &Path,
    path: &Path,
    before: Option<&beneath::Content>,
) -> Option<Changed> {
    let after = match beneath::look(root, path) {
        Ok(content) => content.as_ref().map(kept),
        Err(Error::Large(_, size)) => {
            Some(Content { bytes: None, size, mode: None, shape: Shape::File })
        }
        // Something else is in its place.
        Err(Error::Directory(_) | Error::Special(_)) => None,
        Err(_) => return None,
    };
    let before = before.map(kept);
    let path = Place::find(root, path).and_then(|place| place.real(root)).ok()?;
    // A name that is no text cannot be written down.
    let path = path.into_os_string().into_string().ok()?;
    (before != after).then_some(Changed { path, before, after })
}

fn kept(content: &beneath::Content) -> Content {
    let bytes = content.bytes.clone();
    Content {
        size: bytes.len() as u64,
        bytes: Some(bytes),
        mode: content.mode,
        shape: content.shape,
    }
}
