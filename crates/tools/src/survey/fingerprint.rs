//! A fingerprint of a workspace, to detect changes without reading files.
//!
//! Every turn begins with a survey of the workspace, and usually nothing has changed. A fingerprint costs one
//! `lstat` per file and two per folder; running git alone would cost many times as much. If no folder and no
//! ignore file changed, the set of files is the same, and the tree need not be walked.

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blocking::CancelFlag;
use crate::repository_map::WorkspaceFiles;
use crate::{agents, repository, repository_map};

/// Files of git that change when `git status` does.
const GIT: [&str; 4] = ["HEAD", "index", "logs/HEAD", "info/exclude"];

/// The names that matter in the folders around a workspace and in those of git's.
pub(crate) const MARKS: [&str; 8] =
    [agents::NAME, ".gitignore", ".git", "HEAD", "index", "exclude", "logs", "info"];

/// A workspace at a fingerprint.
#[derive(Clone, Debug, Default)]
pub(super) struct Fingerprint {
    /// What was found in it.
    listing: Arc<WorkspaceFiles>,
    /// The same if nothing changed that decides which files there are.
    marks: u64,
    /// Whether two walks, one after the other, found the same between the same marks. A folder may
    /// change twice without its date showing it, but not that long after the first time.
    is_sure: bool,
    /// The same if nothing changed at all; nothing if not all of it was seen.
    pub(super) print: Option<u64>,
}

impl Fingerprint {
    /// Takes a fingerprint; the last one of the same workspace may save the walk. Ignored files are skipped,
    /// even if they are under version control.
    pub(super) fn take(workspace: &Path, last: Option<&Self>, flag: &CancelFlag) -> Self {
        let Ok(root) = workspace.canonicalize() else { return Self::default() };
        let mut fingerprint = match last {
            Some(last) => last.again(&root, workspace, flag),
            None => Self::first(&root, workspace, flag),
        };
        let whole = fingerprint.files().len() < repository_map::FILES_LIMIT && !flag.is_cancelled();
        fingerprint.print = whole.then(|| print(&root, &fingerprint));
        fingerprint
    }

    /// What was found in the workspace.
    pub(super) fn listing(&self) -> Arc<WorkspaceFiles> {
        self.listing.clone()
    }

    /// The files of the workspace.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.listing.files
    }

    fn first(root: &Path, workspace: &Path, flag: &CancelFlag) -> Self {
        let listing = Arc::new(repository_map::listing(workspace, flag).unwrap_or_default());
        let marks = marks(root, &listing);
        Self { listing, marks, is_sure: false, print: None }
    }

    fn again(&self, root: &Path, workspace: &Path, flag: &CancelFlag) -> Self {
        let is_same = marks(root, &self.listing) == self.marks;
        if is_same && self.is_sure {
            return self.clone();
        }
        let new = Self::first(root, workspace, flag);
        let is_sure = is_same && new.marks == self.marks && new.listing == self.listing;
        Self { is_sure, ..new }
    }
}

/// What decides which files there are.
fn marks(root: &Path, listing: &WorkspaceFiles) -> u64 {
    let mut hasher = DefaultHasher::new();
    for folder in &listing.folders {
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

/// The folders outside of a workspace in which something may change that a fingerprint at it shows.
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

fn print(root: &Path, fingerprint: &Fingerprint) -> u64 {
    let mut hasher = DefaultHasher::new();
    fingerprint.marks.hash(&mut hasher);
    for file in fingerprint.files() {
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

    /// Takes fingerprints until one is sure, and gives it.
    fn sure(root: &Path) -> Fingerprint {
        let flag = CancelFlag::default();
        let mut fingerprint = Fingerprint::take(root, None, &flag);
        for _ in 0..2 {
            fingerprint = Fingerprint::take(root, Some(&fingerprint), &flag);
        }
        assert!(fingerprint.is_sure);
        fingerprint
    }

    #[test]
    fn nothing_is_walked_through_where_nothing_changed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("src/empty")).unwrap();
        fs::write(dir.path().join("src/a"), "1").unwrap();
        let fingerprint = sure(dir.path());
        // The very same list, not one like it.
        let again = Fingerprint::take(dir.path(), Some(&fingerprint), &CancelFlag::default());
        assert!(Arc::ptr_eq(&fingerprint.listing, &again.listing));
        assert_eq!(again.print, fingerprint.print);
        // A change of content is seen without a walk.
        fs::write(dir.path().join("src/a"), "12").unwrap();
        let again = Fingerprint::take(dir.path(), Some(&fingerprint), &CancelFlag::default());
        assert!(Arc::ptr_eq(&fingerprint.listing, &again.listing));
        assert_ne!(again.print, fingerprint.print);
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
            let fingerprint = sure(dir.path());
            change(dir.path());
            let again = Fingerprint::take(dir.path(), Some(&fingerprint), &CancelFlag::default());
            let files: Vec<_> = files.iter().map(PathBuf::from).collect();
            assert_eq!(again.files(), files);
            assert_ne!(again.print, fingerprint.print);
        }
    }

    #[test]
    fn rules_that_ignore_themselves_are_seen_too() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        fs::write(dir.path().join(".gitignore"), ".gitignore\n").unwrap();
        let fingerprint = sure(dir.path());
        assert_eq!(fingerprint.files(), [PathBuf::from("a")]);
        fs::write(dir.path().join(".gitignore"), ".gitignore\na\n").unwrap();
        assert!(
            Fingerprint::take(dir.path(), Some(&fingerprint), &CancelFlag::default())
                .files()
                .is_empty()
        );
    }
}
