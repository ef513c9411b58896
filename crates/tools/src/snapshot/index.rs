//! The files of a workspace at one moment.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use super::Signature;
use super::pack::{Extent, Pack};
use super::signature::Moment;

/// How much of a pack may be of no use any more, beside as much as is of use.
const WASTE: u64 = 64 * 1024 * 1024;

/// The files of a workspace at one moment.
#[derive(Debug)]
pub(super) struct Index {
    /// When they were looked at.
    pub(super) at: Moment,
    /// Sorted by the bytes of their paths.
    pub(super) files: Vec<Entry>,
    pub(super) pack: Arc<Pack>,
    pub(super) rules: Rules,
}

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// From the workspace on.
    pub(super) path: Arc<Path>,
    pub(super) signature: Signature,
    /// Its copy; none if it is too large or cannot be read.
    pub(super) copy: Option<Extent>,
    /// Whether a later change shows in the signature.
    pub(super) settled: bool,
}

/// What decides which files are ignored, beside the `.gitignore` files among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// Whether the workspace is the root of a repository.
    pub(super) repository: bool,
    /// The signature of git's own list.
    pub(super) exclude: Option<Signature>,
}

impl Index {
    /// Whether the pack should be begun anew.
    pub(super) fn is_wasteful(&self) -> bool {
        let used: u64 = self.files.iter().filter_map(|file| file.copy).map(|it| it.length).sum();
        self.pack.length() > 2 * used + WASTE
    }

    /// Whether other files may be ignored than at another moment.
    pub(super) fn has_other_rules(&self, other: &Self) -> bool {
        self.rules != other.rules || !self.ignore_files().eq(other.ignore_files())
    }

    fn ignore_files(&self) -> impl Iterator<Item = (&Path, &Signature)> {
        let ignores = |file: &&Entry| file.path.file_name() == Some(OsStr::new(".gitignore"));
        self.files.iter().filter(ignores).map(|file| (&*file.path, &file.signature))
    }
}

/// The order of files. That of [`Path`] looks at names one by one, which takes longer.
pub(super) fn key(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}
