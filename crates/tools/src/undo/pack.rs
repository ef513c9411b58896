//! A file to which the contents of files are appended.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fstat, futimens};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::snapshot::{Stat, Timestamp};

/// A pack. Only one process appends to it, on any number of threads.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) path: PathBuf,
    file: File,
    end: AtomicU64,
}

/// A content in a pack, which is equal to any other with the same hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Extract {
    hash: String,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl PartialEq for Extract {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Pack {
    /// An empty pack. The one before it is kept for commands that still run, and older ones deleted.
    pub(super) fn create(folder: &Path, number: u64) -> io::Result<Self> {
        let path = |number| folder.join(format!("{number}.pack"));
        if let Some(old) = number.checked_sub(2) {
            let _none = fs::remove_file(path(old));
        }
        let path = path(number);
        let file = File::create_new(&path)?;
        Ok(Self { path, file, end: AtomicU64::new(0) })
    }

    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let end = AtomicU64::new(file.metadata()?.len());
        Ok(Self { path: path.to_owned(), file, end })
    }

    pub(super) fn number(&self) -> u64 {
        let name = self.path.file_stem().and_then(|name| name.to_str());
        name.and_then(|name| name.parse().ok()).unwrap_or_default()
    }

    pub(super) fn length(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Appends a content, unless `last` holds the same one.
    pub(super) fn add(&self, bytes: &[u8], last: Option<&Extract>) -> io::Result<Extract> {
        let (hash, length) = (hex::encode(Sha256::digest(bytes)), bytes.len() as u64);
        if let Some(same) = last.filter(|last| last.hash == hash) {
            return Ok(same.clone());
        }
        let offset = self.end.fetch_add(length, Ordering::Relaxed);
        self.file.write_all_at(bytes, offset)?;
        Ok(Extract { hash, offset, length })
    }

    /// The current time as a file time. Only the file system knows it: its clock runs behind others, and
    /// skips ahead of its own steps where two changes have to differ.
    pub(super) fn now(&self) -> io::Result<Timestamp> {
        let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let (last_access, last_modification) = (special(UTIME_OMIT), special(UTIME_NOW));
        futimens(&self.file, &Timestamps { last_access, last_modification })?;
        Ok(Stat::of(&fstat(&self.file)?).changed)
    }
}
