//! The directory that holds all data of one daemon.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::{Error, FileBlobs, FileDrafts, FileUploads, PackBlobs, blobs, sqlite};

const LOCK_FILE: &str = "quintet.lock";
const DATABASE_FILE: &str = "quintet.db";
const BLOBS_DIR: &str = "blobs";
const UNDO_DIR: &str = "undo";
const DRAFTS_DIR: &str = "drafts";
/// Holds the path of the drafts, if they are in another directory.
const DRAFTS_LOCATION_FILE: &str = "drafts.at";
const UPLOADS_DIR: &str = "artifacts";

/// A data directory, locked against other daemons.
///
/// The lock lasts as long as this value or a database opened through it. It is bound to the
/// open file, so it ends with the process in any case.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: Arc<DirLock>,
}

/// The lock of a data directory.
#[derive(Debug)]
pub(crate) struct DirLock(File);

/// Unlocks explicitly: a child process that is just being started has a copy of the open file for a
/// moment, and closing only this one would leave the lock with that copy.
impl Drop for DirLock {
    fn drop(&mut self) {
        if let Err(error) = flock(&self.0, FlockOperation::Unlock) {
            tracing::warn!(%error, "could not unlock the data directory");
        }
    }
}

impl DataDir {
    /// Locks a directory; creates it, accessible by its owner alone, if it does not exist.
    /// Fails with [`Error::InUse`] if another daemon holds the lock.
    pub fn open(path: &Path) -> Result<Self, Error> {
        create_private(path)?;
        let lock = Arc::new(lock(path)?);
        // Incomplete files of the last daemon are never finished.
        FileBlobs::sweep(&path.join(BLOBS_DIR))?;
        FileBlobs::sweep(&path.join(UPLOADS_DIR))?;
        Ok(Self { path: path.into(), lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the database. Fails if it is damaged, newer or of another program.
    pub fn sqlite(&self) -> Result<sqlite::SqliteStore, Error> {
        let blobs = self.path.join(BLOBS_DIR);
        let store = sqlite::SqliteStore::open_and_collect(&self.path.join(DATABASE_FILE), &blobs)?;
        Ok(store.holding(Arc::clone(&self.lock)))
    }

    /// Opens the blobs. Fails if their directory cannot be created.
    pub fn blobs(&self) -> Result<FileBlobs, Error> {
        FileBlobs::open(&self.path.join(BLOBS_DIR))
    }

    /// Opens the uploads of front ends. Fails if their directory cannot be created.
    pub fn uploads(&self) -> Result<FileUploads, Error> {
        FileUploads::open(&self.path.join(UPLOADS_DIR))
    }

    /// The installs table of a data directory whose daemon may be running; `None` if there
    /// is no database.
    pub fn installs(path: &Path) -> Option<sqlite::InstallTable> {
        sqlite::InstallTable::of(&path.join(DATABASE_FILE))
    }

    /// Opens the undo store with a limit of `bytes`. Fails if its directory cannot be
    /// created.
    pub fn undo(&self, bytes: u64) -> Result<PackBlobs, Error> {
        PackBlobs::open(&self.path.join(UNDO_DIR), bytes)
    }

    /// Opens the drafts: in `runtime_dir` (a directory in memory such as `/run/user/1000`)
    /// if it can be used, so that streamed text is never written to a disk, or else here.
    /// The location is recorded, because the next daemon may get another `runtime_dir`, or
    /// none. Fails if neither directory can be used.
    pub fn drafts(&self, runtime_dir: Option<&Path>) -> Result<FileDrafts, Error> {
        let (here, note) = (self.path.join(DRAFTS_DIR), self.path.join(DRAFTS_LOCATION_FILE));
        let there = runtime_dir.map(|dir| self.drafts_in(dir)).transpose()?;
        let earlier = fs::read(&note).ok().map(|path| PathBuf::from(OsString::from_vec(path)));
        let earlier = [Some(here.clone()), earlier];
        let opened = there.and_then(|there| {
            let opened = open_drafts(&there, &earlier).and_then(|drafts| {
                fs::write(&note, there.as_os_str().as_bytes()).map_err(Error::unusable(&note))?;
                Ok(drafts.with_fallback(&here))
            });
            opened
                .inspect_err(
                    |error| tracing::warn!(%error, "could not use the runtime directory; drafts are in the data directory"),
                )
                .ok()
        });
        if let Some(drafts) = opened {
            return Ok(drafts);
        }
        let drafts = open_drafts(&here, &earlier)?;
        match fs::remove_file(&note) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::unusable(&note)(error)),
            Ok(()) | Err(_) => Ok(drafts),
        }
    }

    /// The drafts directory of this data directory below a runtime directory.
    fn drafts_in(&self, runtime_dir: &Path) -> Result<PathBuf, Error> {
        let path = self.path.canonicalize().map_err(Error::unusable(&self.path))?;
        let name = blobs::blob_id(path.as_os_str().as_encoded_bytes());
        Ok(runtime_dir.join("quintet").join(&name.as_str()[..16]).join(DRAFTS_DIR))
    }
}

/// Opens a directory of drafts and moves those of earlier daemons there.
fn open_drafts(root: &Path, earlier: &[Option<PathBuf>]) -> Result<FileDrafts, Error> {
    let drafts = FileDrafts::open(root)?;
    for other in earlier.iter().flatten().filter(|other| *other != root && other.is_dir()) {
        drafts.take_over(other).map_err(Error::unusable(other))?;
    }
    Ok(drafts)
}

/// Creates a directory and its parents, if they do not exist, and syncs them: files in a
/// directory that is not synced would be lost with it at a power failure.
pub(crate) fn create_private(path: &Path) -> Result<(), Error> {
    let new: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    let above = new.iter().filter_map(|path| path.parent());
    let above = above.map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let synced = created.and_then(|()| above.into_iter().try_for_each(blobs::sync_dir));
    synced.map_err(Error::unusable(path))
}

fn lock(dir: &Path) -> Result<DirLock, Error> {
    let path = dir.join(LOCK_FILE);
    let opened =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = opened.map_err(Error::unusable(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(DirLock(file)),
        Err(Errno::WOULDBLOCK) => Err(Error::InUse(dir.into())),
        Err(errno) => Err(Error::unusable(&path)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starting_child_process_does_not_keep_the_lock() {
        let home = tempfile::tempdir().unwrap();
        let dir = DataDir::open(home.path()).unwrap();
        let _copy = dir.lock.0.try_clone().unwrap();
        assert!(matches!(DataDir::open(home.path()), Err(Error::InUse(_))));
        drop(dir);
        DataDir::open(home.path()).unwrap();
    }
}
