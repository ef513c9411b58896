//! Copies of files, one after the other in a file without a name.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};

use super::signature::Moment;

/// Copies of files. It goes when nobody refers to it any more.
#[derive(Debug)]
pub(super) struct Pack {
    file: File,
    end: AtomicU64,
}

/// Where in a pack a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    offset: u64,
    pub(super) length: u64,
}

impl Pack {
    /// An empty one.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Self { file: tempfile::tempfile_in(folder)?, end: AtomicU64::new(0) })
    }

    /// How long it is.
    pub(super) fn length(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Adds a copy.
    pub(super) fn add(&self, bytes: &[u8]) -> io::Result<Extent> {
        let length = bytes.len() as u64;
        let offset = self.end.fetch_add(length, Ordering::Relaxed);
        self.file.write_all_at(bytes, offset)?;
        Ok(Extent { offset, length })
    }

    /// Reads a copy.
    pub(super) fn read(&self, extent: Extent) -> io::Result<Vec<u8>> {
        let length = usize::try_from(extent.length).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, extent.offset)?;
        Ok(bytes)
    }

    /// Now, by the clock that stamps files.
    pub(super) fn now(&self) -> io::Result<Moment> {
        let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let now =
            Timestamps { last_access: special(UTIME_OMIT), last_modification: special(UTIME_NOW) };
        futimens(&self.file, &now)?;
        let metadata = self.file.metadata()?;
        Ok((metadata.mtime(), metadata.mtime_nsec()))
    }
}
