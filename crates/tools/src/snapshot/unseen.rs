//! Folders that are not looked into before a command, and what can be said of them after it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use quintet_kernel::change::Gap;

use super::ignored::inside;
use super::signature::Moment;
use crate::show;

/// The most paths whose dates are looked at after a command.
const MOST_PATHS: usize = 10_000;

/// Something that is not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unseen {
    /// From the workspace on.
    pub(super) path: PathBuf,
    pub(super) why: Why,
}

/// Why something is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Programs make it anew.
    Made,
    /// There is too much of it.
    Much,
}

impl Why {
    fn words(self) -> &'static str {
        match self {
            Self::Made => "git ignores it, and builds make it anew",
            Self::Much => "git ignores it, and it is too much to be kept",
        }
    }
}

/// What seems to have changed since a moment in folders that were not looked into then or are not now.
pub(super) fn gaps(root: &Path, then: &[Unseen], now: &[Unseen], since: Moment) -> Vec<Gap> {
    let folders: BTreeMap<_, _> = then.iter().chain(now).map(|it| (&*it.path, it.why)).collect();
    let mut left = MOST_PATHS;
    let gap = |(path, why): (&Path, Why)| {
        let paths = match count(root, path, since, &mut left) {
            Some(0) => return None,
            paths => paths,
        };
        Some(Gap { path: show::path(path), paths, reason: why.words().to_owned() })
    };
    folders.into_iter().filter_map(gap).collect()
}

/// How many paths changed, by their dates; nothing if nobody can say.
fn count(root: &Path, path: &Path, since: Moment, left: &mut usize) -> Option<u64> {
    let changed = |path: &Path| {
        let metadata = root.join(path).symlink_metadata().ok()?;
        Some((metadata.ctime(), metadata.ctime_nsec()) >= since)
    };
    let mut folders = vec![path.to_owned()];
    let is_folder = root.join(path).symlink_metadata().ok()?.is_dir();
    if !is_folder {
        return changed(path).map(u64::from);
    }
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        let before = count;
        for (path, is_folder) in inside(root, &folder) {
            *left = left.saturating_sub(1);
            match is_folder {
                true => folders.push(path),
                false => count += u64::from(changed(&path).unwrap_or(true)),
            }
        }
        // Something was taken from it.
        count += u64::from(count == before && changed(&folder).unwrap_or(true));
        if *left == 0 {
            return Some(count).filter(|count| *count > 0);
        }
    }
    Some(count)
}
