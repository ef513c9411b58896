//! The files of a workspace at one moment, in memory and on disk.

use std::fs::{self, File as Disk};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::change::FileKind;
use rustix::fs::Stat as Found;
use serde::{Deserialize, Serialize};

use super::objects::Oid;
use super::pack::Place;
use crate::beneath::shape_of;

/// How the index is written; another one is not read.
const FORMAT: u32 = 1;
/// How much older than a look at it a file's last change must be for its stat to be trusted, in
/// nanoseconds: the clock that stamps files stands still for a few milliseconds, and on file systems
/// that store seconds only for up to two seconds.
const FINE_MARGIN: i128 = 100_000_000;
const COARSE_MARGIN: i128 = 3_000_000_000;

/// A moment by the clock that stamps files: seconds and nanoseconds.
pub(super) type Moment = (i64, i64);

/// The files of a workspace at one moment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Index {
    format: u32,
    /// When they were looked at.
    pub(super) at: Moment,
    /// The pack that their contents are in.
    pub(super) pack: PathBuf,
    /// The files with rules about what git ignores that lie outside of the workspace.
    pub(super) rules: Vec<Option<Stat>>,
    /// Sorted by path; the workspace itself comes first.
    pub(super) folders: Vec<Arc<Folder>>,
}

/// One folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Folder {
    /// From the workspace on; empty for itself.
    pub(super) path: String,
    pub(super) stat: Stat,
    /// True if a later change shows in `stat`.
    pub(super) settled: bool,
    /// Sorted by name.
    pub(super) files: Vec<File>,
    /// The names of the folders in it that git does not ignore, sorted.
    pub(super) folders: Vec<String>,
    /// The names of what git ignores, and of git's own folder.
    pub(super) ignored: Vec<String>,
    /// How many names are not UTF-8.
    pub(super) unnamed: u64,
}

/// One file or link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) stat: Stat,
    pub(super) settled: bool,
    pub(super) kept: Kept,
    /// The content that git had for it when the workspace was first looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tracked: Option<Oid>,
}

/// Where the content of a file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kept {
    /// In the pack.
    Pack(Place),
    /// Among the repository's own objects.
    Object(Oid),
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
    pub(super) fn of(found: &Found) -> Self {
        let nanoseconds = |value: u64| i64::try_from(value).unwrap_or_default();
        Self {
            device: found.st_dev,
            inode: found.st_ino,
            size: u64::try_from(found.st_size).unwrap_or_default(),
            mode: found.st_mode & 0o7777,
            shape: shape_of(found),
            modified: (found.st_mtime, nanoseconds(found.st_mtime_nsec)),
            changed: (found.st_ctime, nanoseconds(found.st_ctime_nsec)),
        }
    }

    /// True if a change after this moment would show.
    pub(super) fn is_settled(&self, at: Moment) -> bool {
        let whole = |(seconds, nanoseconds): Moment| {
            i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
        };
        let margin = if self.changed.1 == 0 { COARSE_MARGIN } else { FINE_MARGIN };
        whole(self.changed) + margin < whole(at)
    }
}

impl Folder {
    /// The path of something in it, from the workspace on.
    pub(super) fn join(&self, name: &str) -> String {
        join(&self.path, name)
    }

    pub(super) fn file(&self, name: &str) -> Option<&File> {
        let at = self.files.binary_search_by(|file| file.name.as_str().cmp(name)).ok()?;
        self.files.get(at)
    }
}

pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl Index {
    pub(super) fn new(
        at: Moment,
        pack: &Path,
        rules: Vec<Option<Stat>>,
        folders: Vec<Arc<Folder>>,
    ) -> Self {
        Self { format: FORMAT, at, pack: pack.to_owned(), rules, folders }
    }

    /// How much of the pack is of use, in bytes.
    pub(super) fn packed(&self) -> u64 {
        let files = self.folders.iter().flat_map(|folder| &folder.files);
        files.map(|file| if let Kept::Pack(place) = &file.kept { place.length } else { 0 }).sum()
    }

    /// Writes it, whole or not at all; what was at the path stays in files that are linked to it.
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("draft");
        let mut file = BufWriter::new(Disk::create(&draft)?);
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        drop(file);
        fs::rename(draft, path)
    }

    pub(super) fn load(path: &Path) -> Option<Self> {
        let file = BufReader::with_capacity(1 << 20, Disk::open(path).ok()?);
        let index: Self = serde_json::from_reader(file).ok()?;
        (index.format == FORMAT).then_some(index)
    }
}
