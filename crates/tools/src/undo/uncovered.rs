//! Changes that snapshots do not cover, as far as file times show them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ignore::WalkBuilder;
use rustix::io::Errno;

use super::compare::Gaps;
use super::snapshot::{Snapshot, Stat, Timestamp};

/// How many ignored paths are checked.
const CHECKED_LIMIT: usize = 2_000;

const GIT: &str = "git's own files: commits, branches and what is staged";

/// Files of git that every commit, checkout, reset, merge, stash or new branch changes.
const HEADS: [&str; 5] = ["HEAD", "logs/HEAD", "refs/heads", "refs/stash", "packed-refs"];

/// Adds changes of ignored files, of git's own files and of names that are not UTF-8.
pub(super) fn add(root: &Path, [old, new]: [&Snapshot; 2], since: Timestamp, gaps: &mut Gaps) {
    let mut left = CHECKED_LIMIT;
    for path in old.ignored().chain(new.ignored()).collect::<BTreeSet<_>>() {
        let place = root.join(&path);
        let (paths, reason) = if place.ends_with(".git") {
            let is_resized = old.git_index != new.git_index;
            (Some(u64::from(is_git_changed(&place, since, is_resized))), GIT)
        } else {
            (count(&place, since, &mut left), "git ignores it")
        };
        if paths != Some(0) {
            gaps.entry(path).or_insert_with(|| (paths, reason.to_owned()));
        }
    }
    for [one, other] in [[old, new], [new, old]] {
        for folder in one.folders.iter().filter(|folder| folder.has_other_names) {
            let counterpart = other.folders.iter().find(|it| it.path == folder.path);
            if counterpart.is_none_or(|it| it.stat != folder.stat) {
                let reason = "names that are not UTF-8".to_owned();
                gaps.entry(folder.path.clone()).or_insert((None, reason));
            }
        }
    }
}

/// True if a commit, a branch or the index changed. `git status` rewrites the index, too, but changes
/// neither its length nor the objects.
fn is_git_changed(git: &Path, since: Timestamp, is_resized: bool) -> bool {
    let has_new_objects = || {
        let folders = fs::read_dir(git.join("objects")).into_iter().flatten().flatten();
        folders.into_iter().any(|folder| is_new(&folder.path(), since))
    };
    HEADS.iter().any(|name| is_new(&git.join(name), since))
        || is_new(&git.join("index"), since) && (is_resized || has_new_objects())
}

/// How many paths changed, or whether this one was deleted; `None` if there are too many to check.
fn count(place: &Path, since: Timestamp, left: &mut usize) -> Option<u64> {
    let is_deleted = rustix::fs::lstat(place).is_err_and(|errno| errno == Errno::NOENT);
    let mut below = WalkBuilder::new(place).standard_filters(false).build().flatten();
    let (mut count, before) = (u64::from(is_deleted), *left);
    for entry in below.by_ref().take(before) {
        count += u64::from(is_new(entry.path(), since));
        *left -= 1;
    }
    Some(count).filter(|count| *count > 0 || below.next().is_none())
}

fn is_new(path: &Path, since: Timestamp) -> bool {
    rustix::fs::lstat(path).is_ok_and(|found| Stat::of(&found).changed >= since)
}
