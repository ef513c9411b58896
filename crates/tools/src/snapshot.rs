//! Snapshots of workspaces: what a command did to files is the difference of two of them.
//!
//! A snapshot lists the files that git would not ignore, each with its [`Stat`] and where its content
//! is kept. Taking the next one costs one `lstat` a file ([`list`]); only a file whose stat changed is
//! read ([`read`]). Content lies in a [pack](pack) in the cache folder, or in the repository's own
//! objects where git says that the file is as it was committed or staged ([`objects`]). What a snapshot
//! does not cover is named in the record ([`uncovered`]): what git ignores, git's own files, files over
//! [`FILE_LIMIT`], and names that are not UTF-8.
//!
//! The index of the snapshot before a command is on disk while the command runs, so that after a crash
//! the difference can still be told. Whatever changes while a command runs is taken for its work, even
//! if somebody else did it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use quintet_kernel::TurnId;
use quintet_kernel::change::UnrecordedChange;
use quintet_kernel::port::ChangedFile;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::blocking::Flag;

mod compare;
mod index;
mod list;
pub(crate) mod objects;
mod pack;
mod read;
mod rules;
mod uncovered;

use index::{Index, Moment};
pub(crate) use list::Listing;
use objects::Oid;
use pack::Pack;

/// The most files of a workspace.
const FILES_LIMIT: usize = 100_000;
/// The longest file whose content is kept, in bytes.
const FILE_LIMIT: u64 = 10 * 1024 * 1024;
/// The most content of a workspace that is kept, in bytes.
const CONTENT_LIMIT: u64 = 1024 * 1024 * 1024;
/// How many workspaces have snapshots; others are copied anew when they are worked in again.
const WORKSPACES_LIMIT: usize = 8;
/// How much of a pack may be of no use any more, beside as much as is of use.
const WASTE_LIMIT: u64 = 128 * 1024 * 1024;

/// The snapshots of all workspaces.
#[derive(Debug)]
pub(crate) struct Snapshots {
    folder: PathBuf,
    /// The last used is the last.
    workspaces: Mutex<Vec<Arc<Workspace>>>,
}

/// What is known of one workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The real path.
    pub(crate) root: PathBuf,
    folder: PathBuf,
    newest: Mutex<Newest>,
    told: Mutex<Told>,
    /// Has one permit: snapshots of a workspace are taken one after the other.
    one_at_a_time: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Newest {
    index: Option<Arc<Index>>,
    pack: Option<Arc<Pack>>,
    /// The index that is on disk.
    saved: Option<Arc<Index>>,
}

/// What was said of a workspace in the turn that last worked in it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    turn: Option<TurnId>,
    /// Why nothing is recorded; there is no need to try again in that turn.
    pub(crate) trouble: Option<String>,
    /// The paths that were named as not recorded.
    pub(crate) paths: HashSet<String>,
}

/// A workspace before something happened to it.
#[derive(Debug)]
pub(crate) struct Base {
    index: Arc<Index>,
    /// When that was, by the clock that stamps files.
    since: Moment,
}

/// What became of files, and what may have happened beside that.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) changes: Vec<ChangedFile>,
    pub(crate) gaps: Vec<UnrecordedChange>,
}

/// Why changes are not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unrecorded {
    #[error("the workspace has more than {FILES_LIMIT} files that git does not ignore")]
    Many,
    #[error("the files of the workspace are more than {} MiB", CONTENT_LIMIT >> 20)]
    Large,
    #[error("the cache folder cannot be used: {0}")]
    Cache(#[from] io::Error),
    #[error("{0}")]
    Workspace(String),
    #[error("cancelled")]
    Cancelled,
}

impl Snapshots {
    /// Snapshots in this folder, which is made when there is something to keep.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, workspaces: Mutex::default() }
    }

    /// What is known of a workspace.
    ///
    /// # Errors
    /// If it is not there.
    pub(crate) fn workspace(&self, root: &Path) -> Result<Arc<Workspace>, Unrecorded> {
        let root = root.canonicalize().map_err(|error| Unrecorded::Workspace(error.to_string()))?;
        let mut workspaces = lock(&self.workspaces);
        let known = workspaces.iter().position(|workspace| workspace.root == root);
        let workspace = match known {
            Some(at) => workspaces.remove(at),
            None => {
                let name = Sha256::digest(root.as_os_str().as_encoded_bytes());
                let name: String = name.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
                let folder = self.folder.join(name);
                let (newest, told) = (Mutex::default(), Mutex::default());
                let one_at_a_time = Arc::new(Semaphore::new(1));
                Arc::new(Workspace { root, folder, newest, told, one_at_a_time })
            }
        };
        workspaces.push(workspace.clone());
        if workspaces.len() > WORKSPACES_LIMIT {
            let oldest = workspaces.remove(0);
            // A command that runs there needs what is kept.
            if Arc::strong_count(&oldest) == 1 {
                remove(&oldest.folder);
            }
        }
        if known.is_none() {
            self.forget_the_oldest(&workspaces);
        }
        Ok(workspace)
    }

    /// Deletes what earlier daemons kept of workspaces that were not used for the longest time.
    fn forget_the_oldest(&self, used: &[Arc<Workspace>]) {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let folders = folders.map(|entry| entry.path());
        let mut folders: Vec<_> =
            folders.filter(|path| !used.iter().any(|it| it.folder == *path)).collect();
        let age = |path: &PathBuf| {
            path.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
        };
        folders.sort_by_key(age);
        let excess = (folders.len() + used.len()).saturating_sub(WORKSPACES_LIMIT);
        folders.iter().take(excess).for_each(|folder| remove(folder));
    }
}

impl Workspace {
    /// Waits until nobody else takes a snapshot here; others wait as long as the result is held.
    pub(crate) async fn alone(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.one_at_a_time).acquire_owned().await.ok()
    }

    /// Lists the files as they are now. Contents are read by [`Self::keep`].
    pub(crate) fn list(&self, flag: &Flag) -> Result<Listing, Unrecorded> {
        let old = self.newest()?;
        list::list(&self.root, old, flag)
    }

    /// Reads what changed since the last snapshot. `tracked` are the files whose content git has,
    /// asked after they were listed.
    pub(crate) fn keep(
        &self,
        listing: Listing,
        tracked: &HashMap<String, Oid>,
        flag: &Flag,
    ) -> Result<Base, Unrecorded> {
        let pack = self.pack(&listing)?;
        let since = pack.now()?;
        let index = read::read(&self.root, listing, tracked, &pack, flag)?;
        let mut newest = lock(&self.newest);
        newest.pack = Some(pack);
        newest.index = Some(index.clone());
        Ok(Base { index, since })
    }

    /// What happened since a snapshot.
    pub(crate) fn since(&self, base: &Base) -> Result<Record, Unrecorded> {
        let flag = Flag::default();
        let now = self.keep(self.list(&flag)?, &HashMap::new(), &flag)?;
        Ok(compare::compare(&self.root, &base.index, &now.index, base.since))
    }

    /// Puts a snapshot where a crash does not take it: beside this path.
    pub(crate) fn save(&self, base: &Base, note: &Path) -> Result<(), Unrecorded> {
        let (index, mut newest) = (&base.index, lock(&self.newest));
        let path = self.folder.join("index");
        if !newest.saved.as_ref().is_some_and(|saved| Arc::ptr_eq(saved, index)) {
            newest.saved = None;
            index.save(&path)?;
            newest.saved = Some(index.clone());
        }
        if let Some(folder) = note.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        fs::hard_link(&path, note.with_extension("index"))?;
        fs::hard_link(&index.pack, note.with_extension("pack"))?;
        Ok(())
    }

    /// The snapshot that was put beside a path before a command that was cut off, if there is one.
    pub(crate) fn saved(note: &Path) -> Option<Base> {
        let mut index = Index::load(&note.with_extension("index"))?;
        index.pack = note.with_extension("pack");
        Some(Base { since: index.at, index: Arc::new(index) })
    }

    /// What was said in this turn; nothing if it is another than the last.
    pub(crate) fn told(&self, turn: &TurnId) -> MutexGuard<'_, Told> {
        let mut told = lock(&self.told);
        if told.turn.as_ref() != Some(turn) {
            *told = Told { turn: Some(turn.clone()), ..Told::default() };
        }
        told
    }

    /// The last snapshot, of this process or of an earlier one; nothing if its pack should be begun
    /// anew.
    fn newest(&self) -> Result<Option<Arc<Index>>, Unrecorded> {
        let mut newest = lock(&self.newest);
        if newest.index.is_none()
            && let Some(index) = Index::load(&self.folder.join("index"))
            && let Ok(pack) = Pack::open(&index.pack)
        {
            newest.pack = Some(Arc::new(pack));
            let index = Arc::new(index);
            newest.saved = Some(index.clone());
            newest.index = Some(index);
        }
        let wasted = match (&newest.index, &newest.pack) {
            (Some(index), Some(pack)) => {
                pack.length() > 2 * index.packed() + WASTE_LIMIT || !index.pack.is_file()
            }
            (None, _) | (_, None) => true,
        };
        Ok(newest.index.clone().filter(|_| !wasted))
    }

    /// The pack that a listing goes on with. The one before the last is not needed any more.
    fn pack(&self, listing: &Listing) -> Result<Arc<Pack>, Unrecorded> {
        let known = lock(&self.newest).pack.clone();
        if let Some(pack) = known.filter(|pack| listing.goes_on_with(pack.path())) {
            return Ok(pack);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let pack = Arc::new(Pack::create(&self.folder)?);
        let last = lock(&self.newest).pack.clone();
        let needed = [Some(&pack), last.as_ref()].map(|it| it.map(|it| it.path().to_owned()));
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let is_pack = entry.path().extension().is_some_and(|it| it == "pack");
            if is_pack && !needed.contains(&Some(entry.path())) {
                let _still_there = fs::remove_file(entry.path());
            }
        }
        Ok(pack)
    }
}

fn remove(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), %error, "an old snapshot could not be deleted");
        }
        Ok(()) | Err(_) => {}
    }
}

/// What is behind these locks is whole even if somebody panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
