//! What git ignores: recorded like the rest where it is little, and left alone where it is much.
//!
//! A folder that builds and package managers fill is never looked into. Nobody wants it back as it
//! was, and an undo would be refused because of it after the next build.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::Signature;
use super::index::key;
use super::scan::Found;
use super::unseen::{Unseen, Why};
use crate::beneath;
use crate::blocking::Flag;

/// Folders that programs fill and fill again.
const MADE: [&str; 24] = [
    "target",
    "node_modules",
    "bower_components",
    "build",
    "dist",
    "out",
    "vendor",
    "venv",
    ".venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".turbo",
    ".parcel-cache",
    ".terraform",
    "_build",
];
/// The most files of one folder that are looked at, and in all.
const MOST_FILES: [usize; 2] = [1_000, 5_000];
/// The most bytes of one folder that are copied, and in all.
const MOST_BYTES: [u64; 2] = [16 * 1024 * 1024, 64 * 1024 * 1024];

/// What git ignores.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    pub(super) files: Vec<Found>,
    /// Folders that were not looked into.
    pub(super) unseen: Vec<Unseen>,
    bytes: u64,
}

/// Looks for what is there beside the files that were found, which are sorted.
pub(super) fn list(root: &Path, found: &[Found], flag: &Flag) -> Ignored {
    let is_known = |path: &Path| found.binary_search_by(|it| key(&it.0).cmp(key(path))).is_ok();
    let (mut folders, mut ignored) = (vec![PathBuf::new()], Ignored::default());
    let mut whole = Vec::new();
    while let Some(folder) = folders.pop().filter(|_| !flag.is_down()) {
        for (path, is_folder) in inside(root, &folder) {
            match is_folder {
                true if holds(found, &path) => folders.push(path),
                true => whole.push(path),
                false if is_known(&path) => {}
                false => ignored.file(root, path),
            }
        }
    }
    whole.sort_unstable();
    whole.into_iter().for_each(|folder| ignored.folder(root, folder, flag));
    ignored
}

impl Ignored {
    fn file(&mut self, root: &Path, path: PathBuf) {
        let Some(found) = signed(root, path) else { return };
        let size = copied(&found);
        if self.files.len() < MOST_FILES[1] && self.bytes + size <= MOST_BYTES[1] {
            self.bytes += size;
            self.files.push(found);
        } else {
            self.unseen.push(Unseen { path: found.0, why: Why::Much });
        }
    }

    /// A folder in which everything is ignored: all of it or nothing.
    fn folder(&mut self, root: &Path, top: PathBuf, flag: &Flag) {
        let (mut files, mut bytes, mut folders) = (Vec::new(), 0, vec![top.clone()]);
        while let Some(folder) = folders.pop().filter(|_| !flag.is_down()) {
            if is_made(&folder) {
                self.unseen.push(Unseen { path: folder, why: Why::Made });
                continue;
            }
            for (path, is_folder) in inside(root, &folder) {
                if is_folder {
                    folders.push(path);
                } else if let Some(found) = signed(root, path) {
                    bytes += copied(&found);
                    files.push(found);
                }
            }
            let [one, all] = MOST_FILES;
            let [one_size, all_size] = MOST_BYTES;
            let many = files.len() > one || self.files.len() + files.len() > all;
            if many || bytes > one_size || self.bytes + bytes > all_size {
                self.unseen.retain(|unseen| !unseen.path.starts_with(&top));
                self.unseen.push(Unseen { path: top, why: Why::Much });
                return;
            }
        }
        self.bytes += bytes;
        self.files.extend(files);
    }
}

/// What is in a folder, and whether it is a folder itself; git's own files are left out.
pub(super) fn inside(root: &Path, folder: &Path) -> Vec<(PathBuf, bool)> {
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let wanted = entries.filter_map(|entry| {
        let name = entry.file_name();
        let kind = entry.file_type().ok()?;
        let is_wanted = name != OsStr::new(".git") && !beneath::is_temporary(&name);
        is_wanted.then(|| (folder.join(name), kind.is_dir()))
    });
    wanted.collect()
}

/// Whether one of the files, which are sorted, is in a folder.
fn holds(files: &[Found], folder: &Path) -> bool {
    let mut start = key(folder).to_vec();
    start.push(b'/');
    let at = files.partition_point(|(path, _)| key(path) < &*start);
    files.get(at).is_some_and(|(path, _)| key(path).starts_with(&start))
}

/// A file or link with its signature; what is gone by now was not there.
fn signed(root: &Path, path: PathBuf) -> Option<Found> {
    let metadata = root.join(&path).symlink_metadata().ok()?;
    let counts = metadata.is_file() || metadata.is_symlink();
    counts.then(|| (path, Signature::of(&metadata)))
}

/// How much of a file is copied.
fn copied((_, signature): &Found) -> u64 {
    if signature.size <= beneath::MOST_BYTES { signature.size } else { 0 }
}

/// Whether a folder is one that programs fill, by its name.
pub(crate) fn is_made(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| MADE.iter().any(|made| name == *made))
}
