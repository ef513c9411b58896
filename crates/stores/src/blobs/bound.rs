//! Blobs that may take only so much of a disk: the oldest go first.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};

use super::TMP;
use crate::lock;

/// How much is left after the oldest went, in hundredths of what may be there.
const LEFT: u64 = 90;

/// How much there may be.
#[derive(Debug)]
pub(super) struct Bound {
    most: u64,
    /// How much there is, once somebody looked.
    used: Mutex<Option<u64>>,
}

impl Bound {
    pub(super) fn new(most: u64) -> Self {
        Self { most, used: Mutex::default() }
    }

    /// Takes note of blobs that were put, and makes room for them if need be. What is put once more
    /// counts as new.
    pub(super) fn put(&self, root: &Path, blobs: &HashSet<PathBuf>) {
        blobs.iter().for_each(|blob| refresh(blob));
        let mut used = lock(&self.used);
        // Some may have been there before; at the latest when there seems to be too much, all is seen.
        let sizes = blobs.iter().filter_map(|blob| Some(blob.metadata().ok()?.len()));
        let guess = used.map(|used| used + sizes.sum::<u64>());
        *used = Some(match guess {
            Some(guess) if guess <= self.most => guess,
            Some(_) | None => self.clear(root, blobs),
        });
    }

    /// Removes the oldest if there is too much; gives how much there is then.
    fn clear(&self, root: &Path, fresh: &HashSet<PathBuf>) -> u64 {
        let mut all = all(root);
        let mut used: u64 = all.iter().map(|(_, size, _)| size).sum();
        if used <= self.most {
            return used;
        }
        all.sort_unstable();
        let old = all.into_iter().filter(|(_, _, path)| !fresh.contains(path));
        for (_, size, path) in old {
            if used <= self.most / 100 * LEFT {
                break;
            }
            if fs::remove_file(path).is_ok() {
                used -= size;
            }
        }
        used
    }
}

/// All blobs: when each was put last, its size and where it lies.
fn all(root: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let shards = fs::read_dir(root).into_iter().flatten().flatten();
    let shards = shards.filter(|shard| shard.file_name() != TMP);
    let files = shards.flat_map(|shard| fs::read_dir(shard.path()).into_iter().flatten().flatten());
    let one = |file: fs::DirEntry| {
        let found = file.metadata().ok()?;
        Some((found.modified().ok()?, found.len(), file.path()))
    };
    files.filter_map(one).collect()
}

fn refresh(blob: &Path) {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let now =
        Timestamps { last_access: special(UTIME_OMIT), last_modification: special(UTIME_NOW) };
    let _as_old_as_it_was = utimensat(CWD, blob, &now, AtFlags::empty());
}
