//! What snapshots do not cover, where it seems to have changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::compare::Gaps;
use super::snapshot::{Moment, Snapshot, Stat};

/// The most paths whose dates are looked at.
const LOOKED_AT_LIMIT: usize = 2_000;

/// What git's own files are called in a gap.
const GIT: &str = "git's own files: commits, branches and what is staged";

/// What changes with every commit, checkout, reset, merge, stash or new branch.
const HEADS: [&str; 5] = ["HEAD", "logs/HEAD", "refs/heads", "refs/stash", "packed-refs"];

/// Adds what git ignores, git's own files and names that are not UTF-8.
pub(super) fn add(root: &Path, [old, new]: [&Snapshot; 2], since: Moment, gaps: &mut Gaps) {
    let ignored: BTreeSet<String> = old.ignored().chain(new.ignored()).collect();
    let mut left = LOOKED_AT_LIMIT;
    for path in ignored {
        let place = root.join(&path);
        let is_git = place.ends_with(".git");
        let (reason, found) = if is_git {
            let staged = old.git_index != new.git_index;
            (
                GIT,
                Some(u64::from(has_new_heads(&place, since) || has_staged(&place, since, staged))),
            )
        } else {
            ("git ignores it", count(place, since, &mut left))
        };
        if found != Some(0) {
            gaps.entry(path).or_insert_with(|| (found, reason.to_owned()));
        }
    }
    for folder in new.folders.iter().filter(|folder| folder.names.not_utf8 > 0) {
        let then = old.folders.iter().find(|it| it.path == folder.path);
        if then.is_none_or(|then| then.stat != folder.stat) {
            let path = folder.path.clone();
            gaps.entry(path).or_insert((None, "names that are not UTF-8".to_owned()));
        }
    }
}

fn has_new_heads(git: &Path, since: Moment) -> bool {
    HEADS.iter().any(|name| is_new(&git.join(name), since))
}

/// True if something was staged: the index was written, which `git status` does as well, and has another
/// length, or there are new objects.
fn has_staged(git: &Path, since: Moment, has_other_length: bool) -> bool {
    let has_new_objects = || {
        let folders = fs::read_dir(git.join("objects")).into_iter().flatten().flatten();
        folders.map(|entry| entry.path()).any(|folder| is_new(&folder, since))
    };
    is_new(&git.join("index"), since) && (has_other_length || has_new_objects())
}

/// How many paths changed since a moment, by their dates; nothing if there are too many to look at.
fn count(path: PathBuf, since: Moment, left: &mut usize) -> Option<u64> {
    let (mut count, mut folders) = (u64::from(is_new(&path, since)), vec![path]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if *left == 0 {
                return Some(count).filter(|count| *count > 0);
            }
            *left -= 1;
            count += u64::from(is_new(&entry.path(), since));
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    Some(count)
}

fn is_new(path: &Path, since: Moment) -> bool {
    rustix::fs::lstat(path).is_ok_and(|found| Stat::of(&found).changed >= since)
}
