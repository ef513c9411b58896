//! What snapshots do not cover, where it seems to have changed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::compare::Gaps;
use super::index::{Index, Moment, Stat};

/// The most paths whose dates are looked at.
const LOOKED_AT_LIMIT: usize = 2_000;

/// What changes with every commit, checkout, reset, merge, stash or new branch.
const HEADS: [&str; 5] = ["HEAD", "logs/HEAD", "refs/heads", "refs/stash", "packed-refs"];

/// Adds what git ignores, git's own files and names that are not UTF-8.
pub(super) fn add(root: &Path, [old, new]: [&Index; 2], since: Moment, gaps: &mut Gaps) {
    let folders = || old.folders.iter().chain(&new.folders);
    let ignored: BTreeSet<String> =
        folders().flat_map(|folder| folder.ignored.iter().map(|name| folder.join(name))).collect();
    let mut left = LOOKED_AT_LIMIT;
    for path in ignored {
        let place = root.join(&path);
        let is_git = place.ends_with(".git");
        let (reason, found) = if is_git {
            ("git's own files: commits, branches and what is staged", heads(&place, since))
        } else {
            ("git ignores it", count(place, since, &mut left))
        };
        if found != Some(0) {
            gaps.entry(path).or_insert_with(|| (found, reason.to_owned()));
        }
    }
    for folder in &new.folders {
        let then = old.folders.iter().find(|it| it.path == folder.path);
        if folder.unnamed > 0 && then.is_none_or(|then| then.stat != folder.stat) {
            let path = folder.path.clone();
            gaps.entry(path).or_insert((None, "names that are not UTF-8".to_owned()));
        }
    }
}

fn heads(git: &Path, since: Moment) -> Option<u64> {
    let changed = HEADS.iter().filter(|name| is_new(&git.join(name), since));
    Some(u64::from(changed.count() > 0))
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
