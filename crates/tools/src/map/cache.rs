//! Remembers what was read of files that have not changed since.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::Stat;

use super::outline::Outline;

/// How much memory the outlines may take.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// What an entry takes besides its outline and its path, about.
const OVERHEAD: usize = 160;

/// By what a file is known again. A change that leaves all of this as it was is not seen: it would
/// have to keep the size and happen within one tick of the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl From<&Stat> for Identity {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// The outlines of files, by their paths.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    entries: HashMap<PathBuf, Entry>,
    bytes: usize,
    /// Counts the maps that were drawn.
    round: u64,
}

#[derive(Debug)]
struct Entry {
    identity: Identity,
    outline: Arc<Outline>,
    /// When it was last of use.
    round: u64,
}

impl Cache {
    /// Begins a new map.
    pub(super) fn begin(&self) {
        self.lock().round += 1;
    }

    /// What is known of a file if it is still the same.
    pub(super) fn find(&self, path: &Path, identity: Identity) -> Option<Arc<Outline>> {
        let mut entries = self.lock();
        let round = entries.round;
        let entry = entries.entries.get_mut(path).filter(|entry| entry.identity == identity)?;
        entry.round = round;
        Some(entry.outline.clone())
    }

    /// Remembers a file, if there is room for it.
    pub(super) fn keep(&self, path: PathBuf, identity: Identity, outline: Arc<Outline>) {
        let mut entries = self.lock();
        entries.remove(&path);
        let size = size(&path, &outline);
        if entries.bytes + size > MOST_BYTES {
            entries.forget_old();
        }
        // What this map was drawn of is not given up for more of it: of a tree that is too large, a
        // part that stays is of more use than parts that drive each other out.
        if entries.bytes + size <= MOST_BYTES {
            entries.bytes += size;
            let round = entries.round;
            entries.entries.insert(path, Entry { identity, outline, round });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, path: &Path) {
        if let Some(entry) = self.entries.remove(path) {
            self.bytes -= size(path, &entry.outline);
        }
    }

    fn forget_old(&mut self) {
        let round = self.round;
        self.entries.retain(|_, entry| entry.round == round);
        self.bytes = self.entries.iter().map(|(path, entry)| size(path, &entry.outline)).sum();
    }
}

fn size(path: &Path, outline: &Outline) -> usize {
    OVERHEAD + path.as_os_str().len() + outline.size()
}
