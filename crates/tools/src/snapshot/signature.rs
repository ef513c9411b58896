//! How a file is known to be as it was, without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use quintet_kernel::change::Shape;

/// A moment by the clock that stamps files: seconds and nanoseconds.
pub(super) type Moment = (i64, i64);

/// How much older than the look at it a file's last change must be, in seconds, for its signature to
/// be trusted. File systems stamp changes by a clock that may stand still for so long, so a file can
/// change once more without it showing.
const MARGIN: i64 = 3;

/// What changes when a file does. The kernel sets the time of the last change of status, which no
/// program can set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    device: u64,
    number: u64,
    pub(super) size: u64,
    /// The permissions.
    pub(super) mode: u32,
    pub(super) shape: Shape,
    modified: Moment,
    changed: Moment,
}

impl Signature {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            number: metadata.ino(),
            size: metadata.len(),
            mode: metadata.mode() & 0o7777,
            shape: if metadata.is_symlink() { Shape::Link } else { Shape::File },
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether a later change would show, if the file was read at this moment.
    pub(super) fn is_settled(&self, at: Moment) -> bool {
        self.changed.0 + MARGIN < at.0
    }

    /// Whether the content is the same, as far as can be told without it.
    pub(super) fn seems_same(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.device, it.number, it.size, it.modified);
        of(self) == of(other)
    }
}
