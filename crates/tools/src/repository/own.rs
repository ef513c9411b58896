//! Which paths of a workspace are git's own files.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use quintet_kernel::change::git::{Own, own, own_within};

use super::is_whole;

/// The repositories in a workspace, as they are found.
#[derive(Debug)]
pub(crate) struct Repositories<'a> {
    root: &'a Path,
    /// Folders, and whether git keeps its files in them.
    known: RefCell<HashMap<PathBuf, bool>>,
}

impl<'a> Repositories<'a> {
    pub(crate) fn new(root: &'a Path) -> Self {
        Self { root, known: RefCell::default() }
    }

    /// What a path is to git. Where its folder has an unusual name, as a bare repository has or one
    /// that lies apart from its files, it counts what is in it.
    pub(crate) fn own(&self, path: &Path) -> Option<Own> {
        if let Some(own) = own(path) {
            return Some(own);
        }
        let folder = path.ancestors().skip(1).find(|folder| self.is_one(folder))?;
        Some(own_within(path.strip_prefix(folder).unwrap_or(path)))
    }

    /// The folder in which git keeps its files, around a path.
    pub(crate) fn around<'b>(&self, path: &'b Path) -> Option<&'b Path> {
        path.ancestors().find(|folder| folder.ends_with(".git") || self.is_one(folder))
    }

    fn is_one(&self, folder: &Path) -> bool {
        if let Some(known) = self.known.borrow().get(folder) {
            return *known;
        }
        let is_one = is_whole(&self.root.join(folder));
        self.known.borrow_mut().insert(folder.to_owned(), is_one);
        is_one
    }
}
