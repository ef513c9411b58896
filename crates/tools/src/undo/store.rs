//! The snapshots that are kept of each workspace.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use quintet_kernel::TurnId;
use sha2::{Digest, Sha256};

use super::git_objects::Tracked;
use super::notes::create_private;
use super::pack::Pack;
use super::snapshot::{Moment, Snapshot};
use super::{Record, Unrecorded, WASTE_LIMIT, compare, take};
use crate::blocking::CancelFlag;

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
    /// The real path.
    pub(super) root: PathBuf,
    folder: PathBuf,
    /// Locked while a snapshot is taken: that is done one after the other.
    last: Mutex<Last>,
    mentioned: Mutex<Mentioned>,
}

/// The last snapshot of a workspace.
#[derive(Debug, Default)]
struct Last {
    snapshot: Option<Arc<Snapshot>>,
    pack: Option<Arc<Pack>>,
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
        Self { folder, workspaces: Mutex::default() }
    }

    /// What is kept of a workspace; nothing if it is not there.
    pub(super) fn workspace(&self, root: &Path) -> Option<Arc<Workspace>> {
        let root = root.canonicalize().ok()?;
        let mut workspaces = lock(&self.workspaces);
        let known = workspaces.iter().position(|workspace| workspace.root == root);
        let workspace = known.map(|at| workspaces.remove(at)).unwrap_or_else(|| {
            let name = Sha256::digest(root.as_os_str().as_encoded_bytes());
            let folder = self.folder.join(hex::encode(&name[..12]));
            let (last, mentioned) = (Mutex::default(), Mutex::default());
            Arc::new(Workspace { root, folder, last, mentioned })
        });
        workspaces.push(workspace.clone());
        if known.is_none() {
            // A command that runs in a workspace needs what is kept of it.
            let excess = workspaces.len().saturating_sub(WORKSPACES_LIMIT);
            let idle = |it: &Arc<Workspace>| Arc::strong_count(it) == 1;
            workspaces.extract_if(..excess, |it| idle(it)).for_each(drop);
            self.remove_oldest(&workspaces);
        }
        Some(workspace)
    }

    /// Deletes what is kept of workspaces that were not used for the longest time.
    fn remove_oldest(&self, used: &[Arc<Workspace>]) {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let unused = |path: &PathBuf| !used.iter().any(|it| it.folder == *path);
        let mut folders: Vec<_> = folders.map(|entry| entry.path()).filter(unused).collect();
        let age = |path: &PathBuf| {
            path.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
        };
        folders.sort_by_key(age);
        let excess = (folders.len() + used.len()).saturating_sub(WORKSPACES_LIMIT);
        for folder in folders.iter().take(excess) {
            if let Err(error) = fs::remove_dir_all(folder)
                && error.kind() != ErrorKind::NotFound
            {
                let folder = folder.display();
                tracing::warn!(%folder, %error, "an old snapshot could not be deleted");
            }
        }
    }
}

impl Workspace {
    /// Gets ready for a snapshot. Gives the time if it is the first one, by the clock that stamps files.
    pub(super) fn prepare(&self) -> Result<Option<Moment>, Unrecorded> {
        let mut last = lock(&self.last);
        let pack = self.open(&mut last)?;
        Ok(if last.snapshot.is_none() { Some(pack.now()?) } else { None })
    }

    /// Takes a snapshot, and puts it beside a note so that a crash does not take it. `tracked` are the
    /// files whose content git has. Others who want to take one wait.
    pub(super) fn take(
        &self,
        tracked: &Tracked,
        flag: &CancelFlag,
        note: Option<&Path>,
    ) -> Result<Base, Unrecorded> {
        let mut last = lock(&self.last);
        let pack = self.open(&mut last)?;
        let since = pack.now()?;
        let snapshot = take::take(&self.root, last.snapshot.as_ref(), tracked, &pack, flag)?;
        last.is_saved &= last.snapshot.as_ref().is_some_and(|it| Arc::ptr_eq(it, &snapshot));
        last.snapshot = Some(snapshot.clone());
        if let Some(note) = note {
            let index = self.folder.join("index");
            if !last.is_saved {
                snapshot.save(&index)?;
                last.is_saved = true;
            }
            create_private(note.parent().unwrap_or(note))?;
            fs::hard_link(&index, note.with_extension("index"))?;
            fs::hard_link(&snapshot.pack, note.with_extension("pack"))?;
        }
        Ok(Base { snapshot, since })
    }

    /// What happened since a snapshot.
    pub(super) fn since(&self, base: &Base) -> Result<Record, Unrecorded> {
        let now = self.take(&Tracked::default(), &CancelFlag::default(), None)?;
        Ok(compare::compare(&self.root, &base.snapshot, &now.snapshot, base.since))
    }

    /// The snapshot that was put beside a path before a command that was cut off, if there is one.
    pub(super) fn saved(note: &Path) -> Option<Base> {
        let mut snapshot = Snapshot::load(&note.with_extension("index"))?;
        snapshot.pack = note.with_extension("pack");
        Some(Base { since: snapshot.at, snapshot: Arc::new(snapshot) })
    }

    /// What was said in this turn; nothing if it is another than the last.
    pub(super) fn mentioned(&self, turn: &TurnId) -> MutexGuard<'_, Mentioned> {
        let mut mentioned = lock(&self.mentioned);
        if mentioned.turn.as_ref() != Some(turn) {
            *mentioned = Mentioned { turn: Some(turn.clone()), ..Mentioned::default() };
        }
        mentioned
    }

    /// Gives the pack to go on with and finds the last snapshot, if need be that of an earlier process. If
    /// much of the pack is of no use any more, both are begun anew.
    fn open(&self, last: &mut Last) -> Result<Arc<Pack>, Unrecorded> {
        if last.pack.is_none()
            && let Some(snapshot) = Snapshot::load(&self.folder.join("index"))
            && let Ok(pack) = Pack::open(&snapshot.pack)
        {
            *last =
                Last { snapshot: Some(snapshot.into()), pack: Some(pack.into()), is_saved: true };
        }
        if let Some(pack) = last.pack.as_ref().filter(|pack| pack.path().is_file()) {
            let useful = last.snapshot.as_ref().map_or(0, |snapshot| snapshot.packed());
            if pack.length() <= 2 * useful + WASTE_LIMIT {
                return Ok(pack.clone());
            }
        }
        create_private(&self.folder)?;
        let pack = Arc::new(Pack::create(&self.folder)?);
        // A command that runs may still need the one before.
        let needed = [Some(&pack), last.pack.as_ref()].map(|it| it.map(|it| it.path().to_owned()));
        *last = Last { pack: Some(pack.clone()), ..Last::default() };
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let is_pack = entry.path().extension().is_some_and(|it| it == "pack");
            if is_pack && !needed.contains(&Some(entry.path())) {
                let _still_there = fs::remove_file(entry.path());
            }
        }
        Ok(pack)
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
