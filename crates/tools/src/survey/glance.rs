//! A workspace at a glance: enough to know whether anything is other than before, without reading it.
//!
//! Every turn begins with a look at the workspace, and mostly nothing has changed. A glance costs one
//! `lstat` a file; asking git alone would cost many times as much, because it is another program.

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::blocking::Flag;
use crate::{agents, map, repository};

/// Files of git that change with what `git status` says.
const GIT: [&str; 4] = ["HEAD", "index", "logs/HEAD", "info/exclude"];

/// A workspace at a glance.
#[derive(Debug, Default)]
pub(super) struct Glance {
    /// Its files.
    pub(super) files: Vec<PathBuf>,
    /// The same if nothing changed; nothing if not all of it was seen.
    pub(super) print: Option<u64>,
}

impl Glance {
    /// Takes one. What git ignores is not looked at, even where it is under version control.
    pub(super) fn take(workspace: &Path, flag: &Flag) -> Self {
        let files = map::files(workspace, flag).unwrap_or_default();
        let whole = files.len() < map::MOST_FILES && !flag.is_down();
        let print = whole.then(|| print(workspace, &files)).flatten();
        Self { files, print }
    }
}

fn print(workspace: &Path, files: &[PathBuf]) -> Option<u64> {
    let root = workspace.canonicalize().ok()?;
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        stamp(&root.join(file)).hash(&mut hasher);
    }
    for folder in root.ancestors() {
        for name in [agents::NAME, ".gitignore", ".git"] {
            stamp(&folder.join(name)).hash(&mut hasher);
        }
        if let Some(git) = repository::marked_by(&folder.join(".git")) {
            GIT.map(|name| stamp(&git.join(name))).hash(&mut hasher);
            break;
        }
    }
    Some(hasher.finish())
}

/// What changes when a file does.
fn stamp(path: &Path) -> Option<[i64; 6]> {
    let of = |meta: Metadata| {
        let (number, size) = (meta.ino() as i64, meta.len() as i64);
        [number, size, meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()]
    };
    fs::symlink_metadata(path).ok().map(of)
}
