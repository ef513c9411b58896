//! Contents of files, one after the other in one file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fstat, futimens};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::snapshot::{Moment, moment};

/// A file to which contents are appended.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) path: PathBuf,
    file: File,
    end: AtomicU64,
}

/// Where in a pack a content is. Two contents with the same hash are the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Extract {
    pub(super) hash: String,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl PartialEq for Extract {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Extract {}

impl Pack {
    /// An empty one of a new name.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let made = tempfile::Builder::new().suffix(".pack").tempfile_in(folder)?;
        let (file, path) = made.keep().map_err(|error| error.error)?;
        Ok(Self { path, file, end: AtomicU64::new(0) })
    }

    /// One that is there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let end = AtomicU64::new(file.metadata()?.len());
        Ok(Self { path: path.to_owned(), file, end })
    }

    pub(super) fn length(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Appends a content, unless it is the one in `last`. Several threads may do so at once.
    pub(super) fn add(&self, bytes: &[u8], last: Option<&Extract>) -> io::Result<Extract> {
        let (hash, length) = (hex::encode(Sha256::digest(bytes)), bytes.len() as u64);
        if let Some(same) = last.filter(|last| last.hash == hash) {
            return Ok(same.clone());
        }
        let offset = self.end.fetch_add(length, Ordering::Relaxed);
        self.file.write_all_at(bytes, offset)?;
        Ok(Extract { hash, offset, length })
    }

    /// The time now, by the clock that stamps files, which no other one agrees with.
    pub(super) fn now(&self) -> io::Result<Moment> {
        let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let now =
            Timestamps { last_access: special(UTIME_OMIT), last_modification: special(UTIME_NOW) };
        futimens(&self.file, &now)?;
        let found = fstat(&self.file)?;
        Ok(moment(found.st_mtime, found.st_mtime_nsec))
    }
}
