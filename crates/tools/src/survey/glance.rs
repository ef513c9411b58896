//! A workspace at a glance: enough to know whether anything is other than before, without reading it.
//!
//! Every turn begins with a look at the workspace, and mostly nothing has changed. A glance costs one
//! `lstat` a file and two a folder; asking git alone would cost many times as much, because it is
//! another program. Where no folder and no list of what is ignored changed, the files are those that
//! they were, and nothing is walked through.

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blocking::Flag;
use crate::map::Ground;
use crate::{agents, map, repository};

/// Files of git that change with what `git status` says.
const GIT: [&str; 4] = ["HEAD", "index", "logs/HEAD", "info/exclude"];

/// The names that matter in the folders around a workspace and in those of git's.
pub(crate) const MARKS: [&str; 8] =
    [agents::NAME, ".gitignore", ".git", "HEAD", "index", "exclude", "logs", "info"];

/// A workspace at a glance.
#[derive(Clone, Debug, Default)]
pub(super) struct Glance {
    /// What was found in it.
    ground: Arc<Ground>,
    /// The same if nothing changed that decides which files there are.
    marks: u64,
    /// Whether two walks, one after the other, found the same between the same marks. A folder may
    /// change twice without its date showing it, but not that long after the first time.
    is_sure: bool,
    /// The same if nothing changed at all; nothing if not all of it was seen.
    pub(super) print: Option<u64>,
}

impl Glance {
    /// Takes one; the last one of the same workspace may save the way through it. What git ignores is
    /// not looked at, even where it is under version control.
    pub(super) fn take(workspace: &Path, last: Option<&Self>, flag: &Flag) -> Self {
        let Ok(root) = workspace.canonicalize() else { return Self::default() };
        let mut glance = match last {
            Some(last) => last.again(&root, workspace, flag),
            None => Self::first(&root, workspace, flag),
        };
        let whole = glance.files().len() < map::MOST_FILES && !flag.is_down();
        glance.print = whole.then(|| print(&root, &glance));
        glance
    }

    /// What was found in the workspace.
    pub(super) fn ground(&self) -> Arc<Ground> {
        self.ground.clone()
    }

    /// The files of the workspace.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.ground.files
    }

    fn first(root: &Path, workspace: &Path, flag: &Flag) -> Self {
        let ground = Arc::new(map::ground(workspace, flag).unwrap_or_default());
        let marks = marks(root, &ground);
        Self { ground, marks, is_sure: false, print: None }
    }

    fn again(&self, root: &Path, workspace: &Path, flag: &Flag) -> Self {
        let is_same = marks(root, &self.ground) == self.marks;
        if is_same && self.is_sure {
            return self.clone();
        }
        let new = Self::first(root, workspace, flag);
        let is_sure = is_same && new.marks == self.marks && new.ground == self.ground;
        Self { is_sure, ..new }
    }
}

/// What decides which files there are.
fn marks(root: &Path, ground: &Ground) -> u64 {
    let mut hasher = DefaultHasher::new();
    for folder in &ground.folders {
        let folder = root.join(folder);
        stamp(&folder).hash(&mut hasher);
        stamp(&folder.join(".gitignore")).hash(&mut hasher);
    }
    for folder in root.ancestors() {
        for name in [agents::NAME, ".gitignore", ".git"] {
            stamp(&folder.join(name)).hash(&mut hasher);
        }
        if let Some(git) = repository::marked_by(&folder.join(".git")) {
            GIT.map(|name| stamp(&git.join(name))).hash(&mut hasher);
            break;
        }
    }
    hasher.finish()
}

/// The folders outside of a workspace in which something may change that a glance at it shows.
pub(crate) fn around(root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for folder in root.ancestors() {
        if folder != root {
            folders.push(folder.to_owned());
        }
        if let Some(git) = repository::marked_by(&folder.join(".git")) {
            folders.extend(["", "logs", "info"].map(|name| git.join(name)));
            break;
        }
    }
    folders
}

fn print(root: &Path, glance: &Glance) -> u64 {
    let mut hasher = DefaultHasher::new();
    glance.marks.hash(&mut hasher);
    for file in glance.files() {
        file.hash(&mut hasher);
        stamp(&root.join(file)).hash(&mut hasher);
    }
    hasher.finish()
}

/// What changes when a file does.
fn stamp(path: &Path) -> Option<[i64; 6]> {
    let of = |meta: Metadata| {
        let (number, size) = (meta.ino() as i64, meta.len() as i64);
        [number, size, meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()]
    };
    fs::symlink_metadata(path).ok().map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes glances until one is sure, and gives it.
    fn sure(root: &Path) -> Glance {
        let flag = Flag::default();
        let mut glance = Glance::take(root, None, &flag);
        for _ in 0..2 {
            glance = Glance::take(root, Some(&glance), &flag);
        }
        assert!(glance.is_sure);
        glance
    }

    #[test]
    fn nothing_is_walked_through_where_nothing_changed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("src/empty")).unwrap();
        fs::write(dir.path().join("src/a"), "1").unwrap();
        let glance = sure(dir.path());
        // The very same list, not one like it.
        let again = Glance::take(dir.path(), Some(&glance), &Flag::default());
        assert!(Arc::ptr_eq(&glance.ground, &again.ground));
        assert_eq!(again.print, glance.print);
        // A change of content is seen without a walk.
        fs::write(dir.path().join("src/a"), "12").unwrap();
        let again = Glance::take(dir.path(), Some(&glance), &Flag::default());
        assert!(Arc::ptr_eq(&glance.ground, &again.ground));
        assert_ne!(again.print, glance.print);
    }

    #[test]
    fn whatever_decides_which_files_there_are_is_seen() {
        type Change = fn(&Path);
        let changes: [(Change, &[&str]); 5] = [
            (|root| fs::write(root.join("src/empty/b"), "").unwrap(), &["src/a", "src/empty/b"]),
            (|root| fs::remove_file(root.join("src/a")).unwrap(), &[]),
            (|root| fs::rename(root.join("src/a"), root.join("c")).unwrap(), &["c"]),
            (|root| fs::write(root.join("src/.gitignore"), "*\n").unwrap(), &[]),
            (
                |root| fs::write(root.join(".gitignore"), "*\n!/.gitignore\n").unwrap(),
                &[".gitignore"],
            ),
        ];
        for (change, files) in changes {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("src/empty")).unwrap();
            fs::write(dir.path().join("src/a"), "1").unwrap();
            let glance = sure(dir.path());
            change(dir.path());
            let again = Glance::take(dir.path(), Some(&glance), &Flag::default());
            let files: Vec<_> = files.iter().map(PathBuf::from).collect();
            assert_eq!(again.files(), files);
            assert_ne!(again.print, glance.print);
        }
    }

    #[test]
    fn rules_that_ignore_themselves_are_seen_too() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        fs::write(dir.path().join(".gitignore"), ".gitignore\n").unwrap();
        let glance = sure(dir.path());
        assert_eq!(glance.files(), [PathBuf::from("a")]);
        fs::write(dir.path().join(".gitignore"), ".gitignore\na\n").unwrap();
        assert!(Glance::take(dir.path(), Some(&glance), &Flag::default()).files().is_empty());
    }
}
