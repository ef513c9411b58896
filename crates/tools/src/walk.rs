//! Walks through the files of a workspace in order, without what git ignores.
//!
//! A walk uses names and follows no link. Readers of its results open files beneath the
//! workspace, so a directory that is swapped meanwhile leads nowhere.

use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::blocking::CancelFlag;
use crate::confined_fs;

/// More threads would only wait for the disk.
const THREADS_LIMIT: usize = 8;

/// What to walk through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) workspace: &'a Path,
    /// Where, if not everywhere.
    pub(crate) within: Option<&'a Path>,
    /// The names of directories that are left out, whether git ignores them or not.
    pub(crate) skipped: &'static [&'static str],
    pub(crate) depth: Option<usize>,
}

/// Something that a walk came by: anything but a directory.
#[derive(Debug)]
pub(crate) struct WalkedFile {
    /// Relative to the workspace.
    pub(crate) path: PathBuf,
    /// Whether it is a regular file, not a link or the like.
    pub(crate) is_file: bool,
}

/// Whether a walk has seen enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Continue,
    Stop,
}

impl Walk<'_> {
    /// Visits everything, one directory after the other, each sorted by name.
    pub(crate) fn each(
        &self,
        flag: &CancelFlag,
        visit: impl FnMut(WalkedFile) -> Result<Next, String>,
    ) -> Result<(), String> {
        self.each_and_folders(flag, |_| (), visit)
    }

    /// Shows what there is, and every directory, by its path from the workspace on, before what is in
    /// it.
    pub(crate) fn each_and_folders(
        &self,
        flag: &CancelFlag,
        mut enter: impl FnMut(&Path),
        mut visit: impl FnMut(WalkedFile) -> Result<Next, String>,
    ) -> Result<(), String> {
        let (root, within) = self.places()?;
        // What cannot be read is left out like what is not there.
        for entry in self.builder(&root, within).build().flatten() {
            if flag.is_cancelled() {
                return Ok(());
            }
            let Some(kind) = entry.file_type() else { continue };
            let Ok(path) = entry.path().strip_prefix(&root) else { continue };
            if kind.is_dir() {
                enter(path);
                continue;
            }
            let found = WalkedFile { path: path.to_owned(), is_file: kind.is_file() };
            if visit(found)? == Next::Stop {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Shows what there is to several threads at once, each of which has a visitor of its own, in no
    /// order.
    pub(crate) fn on_all_threads<V: FnMut(WalkedFile) + Send>(
        &self,
        flag: &CancelFlag,
        visitor: impl Fn() -> V + Sync,
    ) -> Result<(), String> {
        let (root, within) = self.places()?;
        let threads = available_parallelism().map_or(1, usize::from).min(THREADS_LIMIT);
        let mut builder = self.builder(&root, within);
        builder.threads(threads).build_parallel().run(|| {
            let (mut visit, root) = (visitor(), &root);
            Box::new(move |entry| {
                if flag.is_cancelled() {
                    return WalkState::Quit;
                }
                if let Ok(entry) = entry
                    && let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir())
                    && let Ok(path) = entry.path().strip_prefix(root)
                {
                    visit(WalkedFile { path: path.to_owned(), is_file: kind.is_file() });
                }
                WalkState::Continue
            })
        });
        Ok(())
    }

    /// Where the workspace really is, and where in it the walk goes.
    fn places(&self) -> Result<(PathBuf, PathBuf), String> {
        let within = self.within.unwrap_or(Path::new("."));
        let within = confined_fs::real_directory(self.workspace, within);
        let within = within.map_err(|error| error.to_string())?;
        let root = self.workspace.canonicalize().map_err(|error| error.to_string())?;
        Ok((root, within))
    }

    fn builder(&self, root: &Path, within: PathBuf) -> WalkBuilder {
        let (skipped, within) = (self.skipped, root.join(within));
        let mut builder = WalkBuilder::new(root);
        builder
            .standard_filters(false)
            .git_ignore(true)
            .git_exclude(true)
            .require_git(false)
            // Rules further up count if they are those of the same repository.
            .parents(root.ancestors().any(|directory| directory.join(".git").exists()))
            .max_depth(self.depth)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(move |entry| is_wanted(entry, &within, skipped));
        builder
    }
}

fn is_wanted(entry: &DirEntry, within: &Path, skipped: &[&str]) -> bool {
    if entry.depth() == 0 {
        return true;
    }
    let path = entry.path();
    let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
    let name = entry.file_name();
    let is_skipped = name == ".git" || is_dir && skipped.iter().any(|skipped| name == *skipped);
    !is_skipped && (path.starts_with(within) || is_dir && within.starts_with(path))
}
