//! The snapshots that are kept of each workspace.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::TurnId;
use sha2::{Digest, Sha256};

use super::git_objects::Tracked;
use super::notes::create_private;
use super::pack::Pack;
use super::snapshot::{Moment, Snapshot};
use super::{Record, Unrecorded, WASTE_LIMIT, compare, take};
use crate::blocking::CancelFlag;

/// The file with the last snapshot of a workspace.
const INDEX: &str = "index";
/// How many workspaces have snapshots; others are copied anew when they are worked in again.
const WORKSPACES_LIMIT: usize = 8;

/// The snapshots of all workspaces.
#[derive(Debug)]
pub(crate) struct Snapshots {
    folder: PathBuf,
    /// The last used is the last.
    workspaces: Mutex<Vec<Arc<Workspace>>>,
}

/// What is kept of one workspace.
#[derive(Debug)]
pub(super) struct Workspace {
    folder: PathBuf,
    /// Locked while a snapshot is taken: that is done one after the other.
    last: Mutex<Option<Last>>,
    mentioned: Mutex<Mentioned>,
}

/// The last snapshot of a workspace, and the pack to go on with.
#[derive(Debug)]
struct Last {
    snapshot: Option<Arc<Snapshot>>,
    pack: Pack,
    /// True if the snapshot is on disk.
    is_saved: bool,
}

/// What the model was told of a workspace in the turn that last worked in it.
#[derive(Debug, Default)]
pub(super) struct Mentioned {
    turn: Option<TurnId>,
    /// Why nothing is recorded; there is no need to try again in that turn.
    pub(super) trouble: Option<String>,
    /// The paths that were named as not recorded.
    pub(super) paths: HashSet<String>,
}

/// A workspace before something happened to it.
#[derive(Debug)]
pub(super) struct Base {
    snapshot: Arc<Snapshot>,
    /// When that was, by the clock that stamps files.
    since: Moment,
}

impl Snapshots {
    /// Snapshots in this folder, which is made when there is something to keep.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let known = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut known: Vec<_> = known.map(|entry| entry.path()).collect();
        known.sort_by_cached_key(|path| path.metadata().and_then(|it| it.modified()).ok());
        let known = known.into_iter().map(|folder| Arc::new(Workspace::new(folder))).collect();
        Self { folder, workspaces: Mutex::new(known) }
    }

    /// What is kept of a workspace, by its real path. If there are too many, what is kept of the one
    /// that was not used for the longest time is deleted.
    pub(super) fn workspace(&self, root: &Path) -> Arc<Workspace> {
        let name = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let folder = self.folder.join(hex::encode(&name[..12]));
        let mut workspaces = lock(&self.workspaces);
        let known = workspaces.iter().position(|it| it.folder == folder);
        let workspace = match known {
            Some(at) => workspaces.remove(at),
            None => Arc::new(Workspace::new(folder)),
        };
        workspaces.push(workspace.clone());
        let excess = workspaces.len().saturating_sub(WORKSPACES_LIMIT);
        // A command that runs in a workspace needs what is kept of it.
        for old in workspaces.extract_if(..excess, |it| Arc::strong_count(it) == 1) {
            if let Err(error) = fs::remove_dir_all(&old.folder)
                && error.kind() != ErrorKind::NotFound
            {
                let folder = old.folder.display();
                tracing::warn!(%folder, %error, "an old snapshot could not be deleted");
            }
        }
        workspace
    }
}

impl Workspace {
    fn new(folder: PathBuf) -> Self {
        Self { folder, last: Mutex::default(), mentioned: Mutex::default() }
    }

    /// Takes a snapshot, and puts it beside a note so that a crash does not take it. If it is the first
    /// one, `tracked` gives the files whose content git has at this moment. Others who want to take one
    /// wait.
    pub(super) fn take(
        &self,
        root: &Path,
        tracked: impl FnOnce(Moment) -> Tracked,
        flag: &CancelFlag,
        note: Option<&Path>,
    ) -> Result<Base, Unrecorded> {
        let mut last = lock(&self.last);
        let last = self.open(&mut last)?;
        let since = last.pack.now()?;
        let tracked = if last.snapshot.is_none() { tracked(since) } else { Tracked::default() };
        let taken = take::take(root, last.snapshot.as_ref(), &tracked, &last.pack, flag)?;
        last.is_saved &= last.snapshot.as_ref().is_some_and(|it| Arc::ptr_eq(it, &taken));
        last.snapshot = Some(taken.clone());
        if let Some(note) = note {
            let index = self.folder.join(INDEX);
            if !last.is_saved {
                taken.save(&index)?;
                last.is_saved = true;
            }
            create_private(note.parent().unwrap_or(note))?;
            for (file, extension) in [(&index, "index"), (&taken.pack, "pack")] {
                let link = note.with_extension(extension);
                let _none = fs::remove_file(&link);
                fs::hard_link(file, link)?;
            }
        }
        Ok(Base { snapshot: taken, since })
    }

    /// What happened since a snapshot.
    pub(super) fn since(&self, root: &Path, base: &Base) -> Result<Record, Unrecorded> {
        let now = self.take(root, |_| Tracked::default(), &CancelFlag::default(), None)?;
        Ok(compare::compare(root, &base.snapshot, &now.snapshot, base.since))
    }

    /// What was said in this turn; nothing if it is another than the last.
    pub(super) fn mentioned(&self, turn: &TurnId) -> MutexGuard<'_, Mentioned> {
        let mut mentioned = lock(&self.mentioned);
        if mentioned.turn.as_ref() != Some(turn) {
            *mentioned = Mentioned { turn: Some(turn.clone()), ..Mentioned::default() };
        }
        mentioned
    }

    /// Finds the last snapshot, if need be that of an earlier process. If much of its pack is of no use
    /// any more, both are begun anew.
    fn open<'a>(&self, last: &'a mut Option<Last>) -> Result<&'a mut Last, Unrecorded> {
        let known = last.take().or_else(|| Last::load(&self.folder.join(INDEX)));
        let known = match known {
            Some(useful) if useful.is_useful() => return Ok(last.insert(useful)),
            other => other,
        };
        create_private(&self.folder)?;
        let pack = Pack::create(&self.folder)?;
        // A command that runs may still need the one before.
        let needed = [Some(&pack), known.as_ref().map(|it| &it.pack)];
        let needed = needed.map(|it| it.map(|it| it.path.clone()));
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let is_pack = entry.path().extension().is_some_and(|it| it == "pack");
            if is_pack && !needed.contains(&Some(entry.path())) {
                let _still_there = fs::remove_file(entry.path());
            }
        }
        Ok(last.insert(Last { snapshot: None, pack, is_saved: false }))
    }
}

impl Base {
    /// The snapshot that was put beside a note before a command that was cut off, if there is one.
    pub(super) fn saved(note: &Path) -> Option<Self> {
        let mut snapshot = Snapshot::load(&note.with_extension("index"))?;
        snapshot.pack = note.with_extension("pack");
        Some(Self { since: snapshot.at, snapshot: Arc::new(snapshot) })
    }
}

impl Last {
    fn load(index: &Path) -> Option<Self> {
        let snapshot = Snapshot::load(index)?;
        let pack = Pack::open(&snapshot.pack).ok()?;
        Some(Self { snapshot: Some(snapshot.into()), pack, is_saved: true })
    }

    /// True if the pack is there and enough of it is of use.
    fn is_useful(&self) -> bool {
        let used = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.packed());
        self.pack.path.is_file() && self.pack.length() <= 2 * used + WASTE_LIMIT
    }
}

/// What is behind these locks is whole even if somebody panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl Base {
    /// True if this is the very snapshot of another.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.snapshot, &other.snapshot)
    }
}
