//! Which paths of a workspace are git's own files.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use quintet_kernel::change::git::{Own, own, own_within};

use super::is_whole;

/// The repositories in a workspace, as they are found.
#[derive(Debug)]
pub(crate) struct Repositories<'a> {
    root: &'a Path,
    /// Folders, and what is to be found in them.
    known: RefCell<HashMap<PathBuf, Kind>>,
    /// Folders that have or had a mark of git.
    trees: HashSet<&'a Path>,
}

/// What a folder is to git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Git keeps its files in it.
    Repository,
    /// It has a mark of git, so what is in it are somebody's own files.
    Tree,
    /// Nothing by itself.
    Plain,
}

impl<'a> Repositories<'a> {
    pub(crate) fn new(root: &'a Path) -> Self {
        Self { root, known: RefCell::default(), trees: HashSet::new() }
    }

    /// Knows repositories from before, of which only a part may be left, and folders that had a mark
    /// of git.
    pub(crate) fn remembering(
        root: &'a Path,
        repositories: &HashSet<&Path>,
        trees: HashSet<&'a Path>,
    ) -> Self {
        let known = repositories.iter().map(|folder| ((*folder).to_owned(), Kind::Repository));
        Self { root, known: RefCell::new(known.collect()), trees }
    }

    /// What a path is to git. Where its folder has an unusual name, as a bare repository has or one
    /// that lies apart from its files, it counts what is in it.
    pub(crate) fn own(&self, path: &Path) -> Option<Own> {
        if let Some(own) = own(path) {
            return Some(own);
        }
        let folder = self.nearest(path.ancestors().skip(1))?;
        Some(own_within(path.strip_prefix(folder).unwrap_or(path)))
    }

    /// The folder in which git keeps its files, around a path.
    pub(crate) fn around<'b>(&self, path: &'b Path) -> Option<&'b Path> {
        self.nearest(path.ancestors())
    }

    /// The first folder in which git keeps its files. A bare repository may have worktrees inside of
    /// it, and what is in these is not git's.
    fn nearest<'b>(&self, folders: impl Iterator<Item = &'b Path>) -> Option<&'b Path> {
        let mut found = folders.map(|folder| (folder, self.kind(folder)));
        let (folder, kind) = found.find(|(_, kind)| *kind != Kind::Plain)?;
        (kind == Kind::Repository).then_some(folder)
    }

    fn kind(&self, folder: &Path) -> Kind {
        if folder.ends_with(".git") {
            return Kind::Repository;
        }
        if let Some(known) = self.known.borrow().get(folder) {
            return *known;
        }
        let real = self.root.join(folder);
        let is_tree =
            || self.trees.contains(folder) || real.join(".git").symlink_metadata().is_ok();
        let kind = match is_whole(&real) {
            true => Kind::Repository,
            false if is_tree() => Kind::Tree,
            false => Kind::Plain,
        };
        self.known.borrow_mut().insert(folder.to_owned(), kind);
        kind
    }
}
