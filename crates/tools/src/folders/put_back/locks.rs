//! Git is kept out while something is undone, and is not to be in the middle of something itself.
//!
//! Git does not write to a repository in which there is an `index.lock`, so there is one while its files
//! are turned back. A crash may leave it. It says whose it is, and whoever undoes something holds it
//! open and locked: one that nobody holds is taken away by the next undo, which is the same one if it
//! goes on after the crash.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use quintet_kernel::change::Shape;
use quintet_kernel::port::Changed;
use rustix::fs::{FlockOperation, flock, fstat};

use super::around::Around;
use super::{Plan, Step};
use crate::beneath::{Content, Error, Existing, Place};
use crate::show;

/// What keeps git from writing to a repository.
const LOCK: &str = "index.lock";
/// What is there while git writes to one.
const AT_WORK: [&str; 3] = [LOCK, "HEAD.lock", "packed-refs.lock"];
/// What is in a lock of ours, for whoever finds it.
pub(super) const OURS: &str =
    "quintet undoes changes here; remove this file if quintet does not run\n";

impl Plan<'_> {
    /// Git itself is not to be in the middle of something.
    pub(super) fn mind_locks(&mut self, around: &Around<'_>) {
        // A lock that goes with the rest was left by what is undone.
        let mut seen: HashSet<_> = self.steps.iter().map(|step| step.path.to_owned()).collect();
        let mut reasons = Vec::new();
        for step in &self.steps {
            for lock in around.locks(step.path) {
                let is_there = || around.root.join(&lock).symlink_metadata().is_ok();
                if seen.insert(lock.clone()) && is_there() {
                    reasons.push((step.path, at_work(&lock)));
                }
            }
        }
        self.reasons.extend(reasons);
    }

    /// Keeps git out of every repository whose files are to be turned back.
    pub(super) fn lock(&self, around: &Around<'_>) -> Result<Locks, String> {
        let homes: BTreeSet<_> =
            self.steps.iter().flat_map(|step| around.homes(step.path)).collect();
        let mut locks = Locks::default();
        for home in homes {
            let lock = home.join(LOCK);
            // Where one comes or goes with the rest, it keeps git out itself.
            let comes_or_goes = self.steps.iter().any(|step| step.path == lock);
            if around.root.join(home).is_dir() && !comes_or_goes {
                locks.0.push(Lock::take(around.root, lock)?);
            }
        }
        Ok(locks)
    }
}

impl Around<'_> {
    /// The folders around one of git's own files in which git looks for locks: a worktree has its own.
    fn homes<'b>(&self, path: &'b Path) -> Vec<&'b Path> {
        let Some(home) = self.git.around(path) else { return Vec::new() };
        let mut homes = vec![home];
        let worktrees = home.join("worktrees");
        homes.extend(path.ancestors().find(|it| it.parent() == Some(&worktrees)));
        homes
    }

    /// What is there while git writes to a file of its own.
    fn locks(&self, path: &Path) -> Vec<PathBuf> {
        let homes = self.homes(path);
        let own = homes.iter().any(|home| *home != path).then(|| {
            let mut lock = OsString::from(path);
            lock.push(".lock");
            lock.into()
        });
        homes.iter().flat_map(|home| AT_WORK.map(|name| home.join(name))).chain(own).collect()
    }
}

fn at_work(lock: &Path) -> String {
    format!("git is at work: {} is there", show::path(lock))
}

/// Takes away what a crash left of our locks where something is to be undone.
pub(super) fn clear(around: &Around<'_>, changes: &[(&Path, &Changed)]) {
    let homes: BTreeSet<_> = changes.iter().flat_map(|(path, _)| around.homes(path)).collect();
    for home in homes {
        let lock = home.join(LOCK);
        // One that can be held was left by somebody else, and goes as any other.
        drop(Place::find(around.root, &lock).ok().and_then(|place| Lock::hold(lock, place)));
    }
}

/// What keeps git out, until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Locks(Vec<Lock>);

impl Locks {
    /// Lets go of a folder that is about to go itself.
    pub(super) fn give_way(&mut self, step: &Step<'_>) {
        if step.clears() {
            self.0.retain(|lock| lock.path.parent() != Some(step.path));
        }
    }
}

/// A lock that is there, and ours.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    place: Place,
    /// As long as it is open, nobody takes it for one that was left.
    held: File,
}

impl Lock {
    fn take(root: &Path, path: PathBuf) -> Result<Self, String> {
        let place = Place::find(root, &path).map_err(|error| error.to_string())?;
        let content = Content::file(OURS.into(), None);
        place.write(&content, Existing::Refuse).map_err(|error| match error {
            Error::Exists(_) => at_work(&path),
            other => other.to_string(),
        })?;
        // Another undo may have taken it for one that was left, in this very moment.
        Self::hold(path.clone(), place).ok_or_else(|| at_work(&path))
    }

    /// Holds a lock of ours that nobody else holds.
    fn hold(path: PathBuf, place: Place) -> Option<Self> {
        let mut held = place.open().ok()?;
        let mut text = String::new();
        held.by_ref().take(OURS.len() as u64 + 1).read_to_string(&mut text).ok()?;
        if text != OURS {
            return None;
        }
        flock(&held, FlockOperation::NonBlockingLockExclusive).ok()?;
        is_at(&held, &place).then_some(Self { path, place, held })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !is_at(&self.held, &self.place) {
            return;
        }
        if let Err(error) = self.place.remove(Shape::File) {
            tracing::warn!(%error, "git stays locked out of a repository");
        }
    }
}

/// Whether an open file is still the one that is found in its place.
fn is_at(file: &File, place: &Place) -> bool {
    place.stat().is_ok_and(|here| {
        fstat(file).is_ok_and(|it| (it.st_dev, it.st_ino) == (here.st_dev, here.st_ino))
    })
}
