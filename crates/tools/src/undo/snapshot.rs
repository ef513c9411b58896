//! The files of a workspace at one moment, in memory and on disk.

use std::fs;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::change::FileKind;
use serde::{Deserialize, Serialize};

use super::git_objects::ObjectId;
use super::pack::Extract;
use crate::confined_fs::shape_of;

/// How a snapshot is written; another one is not read.
pub(super) const FORMAT: u32 = 3;
/// How much older than a look at it a file's last change must be for its stat to be trusted, in
/// nanoseconds: the clock that stamps files stands still for a few milliseconds, and on file systems
/// that store seconds only for up to two seconds.
const FINE_MARGIN: Moment = 100_000_000;
const COARSE_MARGIN: Moment = 3_000_000_000;
const SECOND: Moment = 1_000_000_000;

/// A moment by the clock that stamps files, in nanoseconds.
pub(super) type Moment = i64;

/// The files of a workspace at one moment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) format: u32,
    /// When they were looked at.
    pub(super) at: Moment,
    /// The pack that their contents are in.
    pub(super) pack: PathBuf,
    /// The files with rules about what git ignores that lie outside of the workspace.
    pub(super) rules: Vec<Option<Stat>>,
    /// The length of git's index, which `git add` changes.
    pub(super) git_index: Option<u64>,
    /// Sorted by path; the workspace itself comes first.
    pub(super) folders: Vec<Arc<FolderEntry>>,
}

/// One folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FolderEntry {
    /// From the workspace on; empty for itself.
    pub(super) path: String,
    pub(super) stat: Stat,
    /// Sorted by name.
    pub(super) files: Vec<Arc<FileEntry>>,
    pub(super) names: Names,
}

/// What else is in a folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Names {
    /// The folders in it that git does not ignore, sorted.
    pub(super) folders: Vec<String>,
    /// What git ignores, and git's own folder, sorted.
    pub(super) ignored: Vec<String>,
    /// How many names are not UTF-8.
    pub(super) not_utf8: u64,
}

/// One file or link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FileEntry {
    pub(super) name: String,
    pub(super) stat: Stat,
    pub(super) stored: Stored,
    /// The content that git had for it when the workspace was first looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tracked: Option<ObjectId>,
}

/// Where the content of a file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stored {
    Pack(Extract),
    /// Among the repository's own objects.
    Object(ObjectId),
    /// Nowhere: the file is too long.
    Large,
    /// Nowhere: the file could not be read.
    Unreadable,
}

/// What changes when a file does. The kernel sets the time of the last change of status, which no
/// program can set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stat {
    #[serde(rename = "d")]
    device: u64,
    #[serde(rename = "i")]
    inode: u64,
    #[serde(rename = "s")]
    pub(super) size: u64,
    #[serde(rename = "p")]
    pub(super) mode: u32,
    #[serde(rename = "k")]
    pub(super) shape: FileKind,
    #[serde(rename = "m")]
    modified: Moment,
    #[serde(rename = "c")]
    pub(super) changed: Moment,
}

impl Stat {
    pub(super) fn of(found: &rustix::fs::Stat) -> Self {
        Self {
            device: found.st_dev,
            inode: found.st_ino,
            size: u64::try_from(found.st_size).unwrap_or_default(),
            mode: found.st_mode & 0o7777,
            shape: shape_of(found),
            modified: moment(found.st_mtime, found.st_mtime_nsec),
            changed: moment(found.st_ctime, found.st_ctime_nsec),
        }
    }

    /// True if a change would show that comes after a look at this moment.
    pub(super) fn is_stable(&self, at: Moment) -> bool {
        let margin = if self.changed % SECOND == 0 { COARSE_MARGIN } else { FINE_MARGIN };
        self.changed.saturating_add(margin) < at
    }
}

/// A moment from seconds and nanoseconds. Programs can set dates that are far off, which then only have to
/// differ.
pub(super) fn moment(seconds: i64, nanoseconds: u64) -> Moment {
    seconds.wrapping_mul(SECOND).wrapping_add_unsigned(nanoseconds)
}

impl FolderEntry {
    /// The path of something in it, from the workspace on.
    pub(super) fn join(&self, name: &str) -> String {
        join(&self.path, name)
    }

    pub(super) fn file(&self, name: &str) -> Option<&Arc<FileEntry>> {
        let at = self.files.binary_search_by(|file| file.name.as_str().cmp(name)).ok()?;
        self.files.get(at)
    }
}

pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl Snapshot {
    /// The paths of what git ignores.
    pub(super) fn ignored(&self) -> impl Iterator<Item = String> {
        self.folders.iter().flat_map(|it| it.names.ignored.iter().map(|name| it.join(name)))
    }

    /// How much of the pack is of use, in bytes.
    pub(super) fn packed(&self) -> u64 {
        let files = self.folders.iter().flat_map(|folder| &folder.files);
        files.map(|file| if let Stored::Pack(it) = &file.stored { it.length } else { 0 }).sum()
    }

    /// Writes it, whole or not at all; what was at the path stays in files that are linked to it.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("draft");
        let mut file = BufWriter::new(fs::File::create(&draft)?);
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        fs::rename(draft, path)
    }

    pub(super) fn load(path: &Path) -> Option<Self> {
        let file = BufReader::with_capacity(1 << 20, fs::File::open(path).ok()?);
        let snapshot: Self = serde_json::from_reader(file).ok()?;
        (snapshot.format == FORMAT).then_some(snapshot)
    }
}
