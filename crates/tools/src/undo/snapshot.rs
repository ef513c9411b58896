//! The files of a workspace at one moment, in memory and on disk.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::change::FileKind;
use serde::{Deserialize, Serialize};

use super::git_objects::ObjectId;
use super::pack::Extract;
use crate::confined_fs::shape_of;

/// The version of the format on disk; other versions are not read.
pub(super) const FORMAT: u32 = 4;
/// How much older than a scan the last change of a file must be for its stat to be trusted, in
/// nanoseconds. The clock for file times stands still for a few milliseconds, and for up to two seconds
/// on file systems that store seconds only.
const FINE_MARGIN: Timestamp = 100_000_000;
const COARSE_MARGIN: Timestamp = 3_000_000_000;
const SECOND: Timestamp = 1_000_000_000;

/// A file time in nanoseconds.
pub(super) type Timestamp = i64;

/// The files of a workspace at one moment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) format: u32,
    /// When the scan began.
    pub(super) at: Timestamp,
    /// The pack with the contents.
    pub(super) pack: PathBuf,
    /// The ignore files outside the workspace.
    pub(super) ignore_files: Vec<Option<Stat>>,
    /// The length of git's index, which `git add` changes.
    pub(super) git_index: Option<u64>,
    /// The folders; the first is the workspace itself.
    pub(super) folders: Vec<Arc<Folder>>,
}

/// A folder. The lists are sorted.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Folder {
    /// Relative to the workspace, empty for the workspace itself.
    pub(super) path: String,
    pub(super) stat: Stat,
    pub(super) entries: Vec<Entry>,
    /// The names of what git ignores, and of git's own folder.
    pub(super) ignored: Vec<String>,
    /// True if there are names that are not UTF-8.
    pub(super) has_other_names: bool,
}

/// A file, link or folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) stat: Stat,
    pub(super) content: Content,
    /// The object that git had for the file at the first snapshot.
    pub(super) tracked: Option<ObjectId>,
}

/// Where a content is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Content {
    /// A folder has none.
    Folder,
    Pack(Extract),
    /// Among the repository's own objects.
    Git(ObjectId),
    /// Not stored: the file is too large.
    Large,
    /// Not stored: the file could not be read.
    Unreadable,
}

/// What changes with a file. The kernel updates `changed` (ctime) with every change of the content, the
/// name or other attributes, and no program can set it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stat {
    inode: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) kind: FileKind,
    pub(super) changed: Timestamp,
}

impl Stat {
    pub(super) fn of(found: &rustix::fs::Stat) -> Self {
        let seconds = found.st_ctime.wrapping_mul(SECOND);
        Self {
            inode: found.st_ino,
            size: u64::try_from(found.st_size).unwrap_or_default(),
            mode: found.st_mode & 0o7777,
            kind: shape_of(found),
            // Wrong times must not be an error: they only have to differ.
            changed: seconds.wrapping_add_unsigned(found.st_ctime_nsec),
        }
    }

    /// True if every change after a scan at this time gives another stat.
    pub(super) fn is_stable(&self, at: Timestamp) -> bool {
        let margin = if self.changed % SECOND == 0 { COARSE_MARGIN } else { FINE_MARGIN };
        self.changed.saturating_add(margin) < at
    }
}

impl Folder {
    /// The path of something in the folder, relative to the workspace.
    pub(super) fn join(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|it| it.name.as_str().cmp(name)).ok()?;
        self.entries.get(at)
    }
}

impl Snapshot {
    /// The paths of what git ignores.
    pub(super) fn ignored(&self) -> impl Iterator<Item = String> {
        self.folders.iter().flat_map(|it| it.ignored.iter().map(|name| it.join(name)))
    }

    /// How many bytes of the pack are used.
    pub(super) fn packed(&self) -> u64 {
        let entries = self.folders.iter().flat_map(|it| &it.entries);
        entries.map(|it| if let Content::Pack(it) = &it.content { it.length } else { 0 }).sum()
    }

    pub(super) fn load(path: &Path) -> Option<Self> {
        let file = BufReader::with_capacity(1 << 20, fs::File::open(path).ok()?);
        let snapshot: Self = serde_json::from_reader(file).ok()?;
        (snapshot.format == FORMAT).then_some(snapshot)
    }
}
