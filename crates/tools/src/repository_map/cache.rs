//! Remembers what was read of files that have not changed since.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::Stat;

use super::outline::Outline;
use super::skim::Skim;

/// How much memory all of it may take.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The approximate size of an entry without its readings and its path.
const OVERHEAD: usize = 160;

/// Identifies a version of a file. A change that keeps all of this is not noticed: it would have to keep the size
/// and happen within one tick of the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl From<&Stat> for FileVersion {
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

/// Something that is read of a file: its skim or its outline.
pub(super) trait Reading: Sized {
    fn of(entry: &Entry) -> Option<Arc<Self>>;
    fn put(self: Arc<Self>, entry: &mut Entry);
    fn size(&self) -> usize;
}

impl Reading for Skim {
    fn of(entry: &Entry) -> Option<Arc<Self>> {
        entry.skim.clone()
    }

    fn put(self: Arc<Self>, entry: &mut Entry) {
        entry.skim = Some(self);
    }

    fn size(&self) -> usize {
        self.size()
    }
}

impl Reading for Outline {
    fn of(entry: &Entry) -> Option<Arc<Self>> {
        entry.outline.clone()
    }

    fn put(self: Arc<Self>, entry: &mut Entry) {
        entry.outline = Some(self);
    }

    fn size(&self) -> usize {
        self.size()
    }
}

/// What was read of files, by their paths.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    entries: HashMap<PathBuf, Entry>,
    bytes: usize,
    /// Counts the maps that were drawn.
    round: u64,
}

/// What was read of a file.
#[derive(Debug)]
pub(super) struct Entry {
    identity: FileVersion,
    skim: Option<Arc<Skim>>,
    outline: Option<Arc<Outline>>,
    size: usize,
    /// When it was last of use.
    round: u64,
}

impl Cache {
    /// Begins a new map.
    pub(super) fn begin(&self) {
        self.lock().round += 1;
    }

    /// The cached reading of a file, if the file has not changed.
    pub(super) fn find<T: Reading>(&self, path: &Path, identity: FileVersion) -> Option<Arc<T>> {
        let mut entries = self.lock();
        let round = entries.round;
        let entry = entries.entries.get_mut(path).filter(|entry| entry.identity == identity)?;
        entry.round = round;
        T::of(entry)
    }

    /// Remembers what was read of a file, if there is room for it.
    pub(super) fn keep<T: Reading>(&self, path: PathBuf, identity: FileVersion, reading: Arc<T>) {
        let mut entries = self.lock();
        let round = entries.round;
        let (overhead, size) = (OVERHEAD + path.as_os_str().len(), reading.size());
        let mut entry = match entries.entries.remove(&path) {
            Some(known) => {
                entries.bytes -= known.size;
                Some(known).filter(|known| known.identity == identity)
            }
            None => None,
        }
        .unwrap_or(Entry { identity, skim: None, outline: None, size: overhead, round });
        if entries.bytes + entry.size + size > MOST_BYTES {
            entries.forget_old();
        }
        // Entries of the current map are not evicted for more of it: for a tree that is too large, a stable
        // part is more useful than entries that evict each other.
        if entries.bytes + entry.size + size <= MOST_BYTES {
            entry.size += size;
            reading.put(&mut entry);
        }
        entries.bytes += entry.size;
        entries.entries.insert(path, entry);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn forget_old(&mut self) {
        let round = self.round;
        self.entries.retain(|_, entry| entry.round == round);
        self.bytes = self.entries.values().map(|entry| entry.size).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository_map::languages::Family;
    use crate::repository_map::name::Name;

    fn identity(inode: u64) -> FileVersion {
        FileVersion { device: 1, inode, size: 1, modified: (1, 1), changed: (1, 1) }
    }

    /// A skim that takes more than a third of the room there is.
    fn large() -> Arc<Skim> {
        let uses = vec![(Name::of(Family::C, b""), 1); 25 * 1024 * 1024 / 16];
        Arc::new(Skim { uses: uses.into(), ..Skim::default() })
    }

    #[test]
    fn what_is_older_makes_room_for_what_is_of_use_now() {
        let cache = Cache::default();
        let knows = |path: &str| cache.find::<Skim>(path.as_ref(), identity(1)).is_some();
        cache.begin();
        cache.keep("a".into(), identity(1), large());
        cache.keep("b".into(), identity(1), large());
        assert!(
            knows("a") && knows("b") && cache.find::<Outline>("a".as_ref(), identity(1)).is_none()
        );
        assert!(cache.find::<Skim>("a".as_ref(), identity(2)).is_none(), "it is another file now");
        // There is no room for a third, unless an older one goes.
        cache.keep("c".into(), identity(1), large());
        assert!(knows("a") && knows("b") && !knows("c"));
        cache.begin();
        assert!(knows("b"));
        cache.keep("c".into(), identity(1), large());
        assert!(!knows("a") && knows("b") && knows("c"));
    }

    #[test]
    fn another_reading_of_a_file_joins_the_first_unless_it_changed() {
        let cache = Cache::default();
        let path = Path::new("a");
        cache.keep::<Skim>(path.into(), identity(1), Arc::default());
        cache.keep::<Outline>(path.into(), identity(1), Arc::default());
        assert!(cache.find::<Skim>(path, identity(1)).is_some());
        cache.keep::<Outline>(path.into(), identity(2), Arc::default());
        assert!(cache.find::<Skim>(path, identity(2)).is_none());
        assert!(cache.find::<Outline>(path, identity(2)).is_some());
    }
}
