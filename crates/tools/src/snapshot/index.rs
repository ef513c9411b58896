//! The files of a workspace at one moment.

use std::path::Path;
use std::sync::Arc;

use super::Signature;
use super::pack::{Extent, Pack};
use super::signature::Moment;
use super::unseen::Unseen;

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
    /// What there is beside them.
    pub(super) unseen: Vec<Unseen>,
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

impl Index {
    /// Whether the pack should be begun anew.
    pub(super) fn is_wasteful(&self) -> bool {
        let used: u64 = self.files.iter().filter_map(|file| file.copy).map(|it| it.length).sum();
        self.pack.length() > 2 * used + WASTE
    }
}

/// The order of files. That of [`Path`] looks at names one by one, which takes longer.
pub(super) fn key(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}
