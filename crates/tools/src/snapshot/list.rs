//! Lists the files of a workspace with their stats.
//!
//! A folder whose stat did not change has the same names in it as the last time, so it is neither read
//! nor matched against the rules about what git ignores, unless these changed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use quintet_kernel::change::FileKind;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

use super::index::{Folder, Index, Stat, join};
use super::rules::{self, Rules};
use super::{FILES_LIMIT, Unrecorded};
use crate::beneath;
use crate::blocking::Flag;

/// Fewer files are not worth another thread.
const FILES_A_THREAD: usize = 2_000;
const THREADS_LIMIT: usize = 8;

/// The files of a workspace as they are now, and what was known of them.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(super) old: Option<Arc<Index>>,
    pub(super) rules: Vec<Option<Stat>>,
    pub(super) folders: Vec<Listed>,
}

/// One folder, with the stats of what is in it.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) old: Option<Arc<Folder>>,
    pub(super) path: String,
    pub(super) stat: Stat,
    pub(super) names: Names,
    /// The files and links that are there, sorted by name.
    pub(super) files: Vec<(String, Stat)>,
}

/// What is in a folder.
#[derive(Debug)]
pub(super) enum Names {
    /// The same as the last time.
    Same,
    /// The names that were read.
    Read { files: Vec<String>, folders: Vec<String>, ignored: Vec<String>, unnamed: u64 },
}

impl Listing {
    /// True if git should be asked which files it has: nothing is known of any.
    pub(crate) fn is_first(&self) -> bool {
        self.old.is_none()
    }

    pub(super) fn goes_on_with(&self, pack: &Path) -> bool {
        self.old.as_ref().is_some_and(|old| old.pack == pack)
    }
}

/// Lists a workspace.
pub(super) fn list(
    root: &Path,
    old: Option<Arc<Index>>,
    flag: &Flag,
) -> Result<Listing, Unrecorded> {
    let unusable = |error: rustix::io::Errno| Unrecorded::Workspace(error.to_string());
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let at = openat(CWD, root, directory, Mode::empty()).map_err(unusable)?;
    let (outside, rules) = Rules::outside(root);
    let same_rules = old.as_ref().is_some_and(|old| old.rules == rules);
    let known = old.iter().flat_map(|old| &old.folders).map(|it| (it.path.as_str(), it)).collect();
    let walk = Walk { root, at: &at, known };
    let mut folders = walk.folders(&outside, same_rules, flag)?;
    stat_all(&at, &mut folders);
    if flag.is_down() {
        return Err(Unrecorded::Cancelled);
    }
    folders.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(Listing { old, rules, folders })
}

struct Walk<'a> {
    root: &'a Path,
    at: &'a OwnedFd,
    known: HashMap<&'a str, &'a Arc<Folder>>,
}

/// A folder that is to be looked at.
struct Pending {
    path: String,
    rules: Arc<Rules>,
    /// True if the rules around it are those of the last time.
    same_rules: bool,
}

impl Walk<'_> {
    fn folders(
        &self,
        outside: &Arc<Rules>,
        same_rules: bool,
        flag: &Flag,
    ) -> Result<Vec<Listed>, Unrecorded> {
        let (mut listed, mut count) = (Vec::new(), 0);
        let mut pending = vec![Pending { path: String::new(), rules: outside.clone(), same_rules }];
        while let Some(next) = pending.pop() {
            // What is gone by now was not there.
            let Some((folder, rules, same_rules)) = self.folder(next) else { continue };
            let (files, folders) = folder.counted();
            count += files;
            if count > FILES_LIMIT {
                return Err(Unrecorded::Many);
            }
            let inside = folders.iter().map(|name| Pending {
                path: join(&folder.path, name),
                rules: rules.clone(),
                same_rules,
            });
            pending.extend(inside);
            listed.push(folder);
            if flag.is_down() {
                return Err(Unrecorded::Cancelled);
            }
        }
        Ok(listed)
    }

    fn folder(&self, pending: Pending) -> Option<(Listed, Arc<Rules>, bool)> {
        let Pending { path, rules: around, same_rules } = pending;
        let stat = stat(self.at, if path.is_empty() { "." } else { &path })?;
        if stat.shape != FileKind::Folder {
            return None;
        }
        let old = self.known.get(path.as_str()).map(|old| Arc::clone(old));
        let rules = Rules::within(&around, self.root.join(&path));
        let same_rules = same_rules && self.same_rules(&path, old.as_deref());
        let is_same = same_rules && old.as_ref().is_some_and(|old| old.stat == stat && old.settled);
        let names = if is_same { Names::Same } else { self.read(&path, &rules) };
        Some((Listed { old, path, stat, names, files: Vec::new() }, rules, same_rules))
    }

    /// True if the folder's own rules are those of the last time.
    fn same_rules(&self, path: &str, old: Option<&Folder>) -> bool {
        let before = old.and_then(|old| old.file(rules::FILE)).map(|file| file.stat);
        before == stat(self.at, &join(path, rules::FILE))
    }

    fn read(&self, path: &str, rules: &Rules) -> Names {
        let (mut files, mut folders, mut ignored, mut unnamed) =
            (Vec::new(), Vec::new(), Vec::new(), 0);
        let folder = self.root.join(path);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if beneath::is_temporary(&name) {
                continue;
            }
            let Some(text) = name.to_str().map(str::to_owned) else {
                unnamed += 1;
                continue;
            };
            if name == OsStr::new(".git") || rules.ignore(&folder.join(&name), kind.is_dir()) {
                ignored.push(text);
            } else if kind.is_dir() {
                folders.push(text);
            } else if kind.is_file() || kind.is_symlink() {
                files.push(text);
            }
        }
        for names in [&mut files, &mut folders, &mut ignored] {
            names.sort_unstable();
        }
        Names::Read { files, folders, ignored, unnamed }
    }
}

impl Listed {
    /// How many files are in it, and the names of its folders.
    fn counted(&self) -> (usize, &[String]) {
        match (&self.names, &self.old) {
            (Names::Read { files, folders, .. }, _) => (files.len(), folders),
            (Names::Same, Some(old)) => (old.files.len(), &old.folders),
            (Names::Same, None) => (0, &[]),
        }
    }

    fn stat_files(&mut self, at: &OwnedFd) {
        let one = |name: &str| {
            let stat = stat(at, &join(&self.path, name))?;
            matches!(stat.shape, FileKind::File | FileKind::Link).then(|| (name.to_owned(), stat))
        };
        self.files = match (&self.names, &self.old) {
            (Names::Read { files, .. }, _) => files.iter().filter_map(|name| one(name)).collect(),
            (Names::Same, Some(old)) => {
                old.files.iter().filter_map(|file| one(&file.name)).collect()
            }
            (Names::Same, None) => Vec::new(),
        };
    }
}

/// Finds out the stats of all files, on several threads where there are many.
fn stat_all(at: &OwnedFd, folders: &mut [Listed]) {
    let files: usize = folders.iter().map(|folder| folder.counted().0).sum();
    let share = share(files, folders.len());
    if share >= folders.len() {
        folders.iter_mut().for_each(|folder| folder.stat_files(at));
        return;
    }
    thread::scope(|scope| {
        for folders in folders.chunks_mut(share) {
            let work = move || folders.iter_mut().for_each(|folder| folder.stat_files(at));
            scope.spawn(work);
        }
    });
}

/// How many of several things one thread takes.
pub(super) fn share(files: usize, things: usize) -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from).min(THREADS_LIMIT);
    let threads = (files / FILES_A_THREAD).clamp(1, processors);
    // Smaller shares than threads, because some take longer than others.
    let shares = if threads == 1 { 1 } else { threads * 4 };
    things.div_ceil(shares).max(1)
}

fn stat(at: &OwnedFd, path: &str) -> Option<Stat> {
    let found = statat(at, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(Stat::of(&found))
}
