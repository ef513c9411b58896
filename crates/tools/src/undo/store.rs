//! The snapshots of each workspace.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::TurnId;
use sha2::{Digest, Sha256};

use super::git_objects::Tracked;
use super::pack::Pack;
use super::scan::scan;
use super::snapshot::{Snapshot, Timestamp};
use super::undo_log::{create_private, write_json};
use super::{Record, Unrecorded, WASTE_LIMIT, compare};
use crate::blocking::CancelFlag;

/// The file with the last snapshot of a workspace.
const INDEX: &str = "index";
/// How many workspaces have snapshots.
const WORKSPACES_LIMIT: usize = 8;
/// How many processes can use a cache folder at the same time.
const PROCESSES_LIMIT: usize = 64;

/// The snapshots of all workspaces.
#[derive(Debug)]
pub(super) struct Snapshots {
    cache: PathBuf,
    opened: Mutex<Option<Opened>>,
}

/// A folder for snapshots that only this process uses.
#[derive(Debug)]
struct Opened {
    folder: PathBuf,
    /// The folder itself, which is locked.
    lock: File,
    /// The most recently used is the last.
    workspaces: Vec<Arc<WorkspaceSnapshots>>,
}

/// The snapshots of one workspace.
#[derive(Debug)]
pub(super) struct WorkspaceSnapshots {
    folder: PathBuf,
    /// Locked during a scan, so that there is one at a time.
    last: Mutex<Option<Last>>,
    /// Why a command of this turn was not recorded.
    pub(super) failure: Mutex<Option<(TurnId, String)>>,
}

/// The last snapshot, and the pack to which the next one appends.
#[derive(Debug)]
pub(super) struct Last {
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) pack: Pack,
    /// True if the snapshot is on disk.
    pub(super) is_saved: bool,
}

/// The snapshot before a command.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) snapshot: Arc<Snapshot>,
    /// When it was taken. The snapshot itself is older if nothing had changed.
    since: Timestamp,
}

impl Snapshots {
    pub(super) fn new(cache: PathBuf) -> Self {
        Self { cache, opened: Mutex::default() }
    }

    /// The snapshots of a workspace, by its real path. If there are too many workspaces, the snapshots
    /// of the least recently used one are deleted.
    pub(super) fn workspace(&self, root: &Path) -> Result<Arc<WorkspaceSnapshots>, Unrecorded> {
        let mut opened = lock(&self.opened);
        let Opened { folder, workspaces, .. } = match &mut *opened {
            Some(opened) => opened,
            none => none.insert(Opened::new(&self.cache)?),
        };
        let name = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let folder = folder.join(hex::encode(&name[..12]));
        let known = workspaces.iter().position(|it| it.folder == folder);
        let known = known.map(|at| workspaces.remove(at));
        let workspace = known.unwrap_or_else(|| Arc::new(WorkspaceSnapshots::new(folder)));
        workspaces.push(workspace.clone());
        let excess = workspaces.len().saturating_sub(WORKSPACES_LIMIT);
        // Those in which a command runs are kept.
        for old in workspaces.extract_if(..excess, |it| Arc::strong_count(it) == 1) {
            let _left = fs::remove_dir_all(&old.folder);
        }
        Ok(workspace)
    }
}

impl Opened {
    /// Locks the first folder that no other process uses: its packs have one writer. The system releases
    /// the lock when the process ends.
    fn new(cache: &Path) -> io::Result<Self> {
        for number in 0..PROCESSES_LIMIT {
            let name = if number == 0 { String::new() } else { format!("-{number}") };
            let folder = cache.join(format!("snapshots{name}"));
            create_private(&folder)?;
            let file = File::open(&folder)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                other => other?,
            }
            let known = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
            let mut known: Vec<_> = known.collect();
            known.sort_by_cached_key(|path| path.metadata().and_then(|it| it.modified()).ok());
            let known = known.into_iter().map(|it| Arc::new(WorkspaceSnapshots::new(it)));
            let workspaces = known.collect();
            return Ok(Self { folder, lock: file, workspaces });
        }
        Err(io::Error::other("too many processes use it"))
    }
}

impl Drop for Opened {
    /// A process that is being started may have a copy of the file, which would keep the lock.
    fn drop(&mut self) {
        let _unlocked = self.lock.unlock();
    }
}

impl WorkspaceSnapshots {
    fn new(folder: PathBuf) -> Self {
        Self { folder, last: Mutex::default(), failure: Mutex::default() }
    }

    /// Takes the snapshot before a command, and links it next to the command's entry of the undo log.
    /// `tracked` is called for the first snapshot of a workspace.
    pub(super) fn before(
        &self,
        root: &Path,
        tracked: impl FnOnce() -> Tracked,
        cancel: &CancelFlag,
        entry: Option<&Path>,
    ) -> Result<Base, Unrecorded> {
        let mut last = lock(&self.last);
        let last = self.open(&mut last)?;
        let since = last.pack.now()?;
        let tracked = if last.snapshot.is_none() { tracked() } else { Tracked::new() };
        let snapshot = last.scan(root, since, &tracked, cancel)?;
        if let Some(entry) = entry {
            let index = self.folder.join(INDEX);
            if !last.is_saved {
                write_json(&index, &*snapshot)?;
                last.is_saved = true;
            }
            create_private(entry.parent().unwrap_or(entry))?;
            for (file, extension) in [(&index, "index"), (&snapshot.pack, "pack")] {
                let link = entry.with_extension(extension);
                let _none = fs::remove_file(&link);
                fs::hard_link(file, link)?;
            }
        }
        Ok(Base { snapshot, since })
    }

    /// The changes since a snapshot.
    pub(super) fn since(&self, root: &Path, base: &Base) -> Result<Record, Unrecorded> {
        let mut last = lock(&self.last);
        let last = self.open(&mut last)?;
        // After a crash there may be no other.
        last.snapshot.get_or_insert_with(|| base.snapshot.clone());
        let now = last.scan(root, last.pack.now()?, &Tracked::new(), &CancelFlag::default())?;
        Ok(compare::compare(root, &base.snapshot, &now, base.since))
    }

    /// The last snapshot, possibly of an earlier process. If much of its pack is unused, a new one is
    /// begun.
    fn open<'a>(&self, last: &'a mut Option<Last>) -> Result<&'a mut Last, Unrecorded> {
        if last.is_none() {
            *last = Last::load(&self.folder.join(INDEX));
        }
        let (snapshot, number) = match last.take() {
            Some(useful) if useful.is_useful() => return Ok(last.insert(useful)),
            Some(Last { snapshot, pack, .. }) => (snapshot, pack.number() + 1),
            None => {
                // Nothing here can be read, or there is nothing.
                let _none = fs::remove_dir_all(&self.folder);
                (None, 0)
            }
        };
        create_private(&self.folder)?;
        let pack = Pack::create(&self.folder, number)?;
        Ok(last.insert(Last { snapshot, pack, is_saved: false }))
    }
}

impl Base {
    /// The snapshot that was linked next to an entry of the undo log, if there is one.
    pub(super) fn load(entry: &Path) -> Option<Self> {
        let mut snapshot = Snapshot::load(&entry.with_extension("index"))?;
        snapshot.pack = entry.with_extension("pack");
        Some(Self { since: snapshot.at, snapshot: Arc::new(snapshot) })
    }
}

impl Last {
    fn load(index: &Path) -> Option<Self> {
        let snapshot = Snapshot::load(index)?;
        let pack = Pack::open(&snapshot.pack).ok()?;
        Some(Self { snapshot: Some(snapshot.into()), pack, is_saved: true })
    }

    /// True if the pack exists and enough of it is used.
    fn is_useful(&self) -> bool {
        let used = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.packed());
        self.pack.path.is_file() && self.pack.length() <= 2 * used + WASTE_LIMIT
    }

    fn scan(
        &mut self,
        root: &Path,
        at: Timestamp,
        tracked: &Tracked,
        cancel: &CancelFlag,
    ) -> Result<Arc<Snapshot>, Unrecorded> {
        let taken = scan(root, at, self, tracked, cancel)?;
        self.is_saved &= self.snapshot.as_ref().is_some_and(|last| Arc::ptr_eq(last, &taken));
        self.snapshot = Some(taken.clone());
        Ok(taken)
    }
}

/// Locks a value that is consistent even if another thread panicked.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
