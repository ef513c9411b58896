//! Changes of files that are under way, so that what a crash leaves of them is removed at the next start.
//!
//! A file is written beside its place, under a temporary name, and then takes the place. If the daemon is
//! killed in between, the temporary file stays.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::confined_fs;

/// Where it is written down which folders are being written to.
#[derive(Debug)]
pub(crate) struct Unfinished {
    folder: PathBuf,
}

impl Unfinished {
    /// Removes the temporary files of changes that were cut off.
    pub(crate) fn new(folder: PathBuf) -> Self {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let written = fs::read(entry.path()).ok();
            let written =
                written.and_then(|it| serde_json::from_slice::<(PathBuf, Vec<PathBuf>)>(&it).ok());
            if let Some((root, folders)) = written {
                folders.iter().for_each(|folder| confined_fs::remove_temporary(&root, folder));
            }
            let _gone = fs::remove_file(entry.path());
        }
        Self { folder }
    }

    /// Writes down that these files are about to be written, until the result is dropped. Without that
    /// they can be written all the same.
    pub(super) fn begin<'a>(
        &self,
        root: &Path,
        files: impl Iterator<Item = &'a Path>,
    ) -> Option<TempPath> {
        let mut folders: Vec<_> = files.filter_map(Path::parent).collect();
        folders.sort_unstable();
        folders.dedup();
        let begun = self.write(root, &folders);
        begun
            .inspect_err(|error| tracing::warn!(%error, "cannot note which files are written"))
            .ok()
    }

    fn write(&self, root: &Path, folders: &[&Path]) -> io::Result<TempPath> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let note = tempfile::NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer(&note, &(root, folders))?;
        Ok(note.into_temp_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_of_a_crash_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (root, notes) = (dir.path().join("work"), dir.path().join("unfinished"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        for name in ["a/b/.quintet-1-2.tmp", "a/b/c", ".quintet-1-3.tmp", "a/.quintet-1-4.tmp"] {
            fs::write(root.join(name), "").unwrap();
        }
        let unfinished = Unfinished::new(notes.clone());
        let files = ["a/b/c", "d"].map(Path::new);
        let begun = unfinished.begin(&root, files.into_iter()).unwrap();
        // As a crash does.
        std::mem::forget(begun);
        Unfinished::new(notes.clone());
        let is_there = |name: &str| root.join(name).exists();
        assert!(is_there("a/b/c") && is_there("a/.quintet-1-4.tmp"));
        assert!(!is_there("a/b/.quintet-1-2.tmp") && !is_there(".quintet-1-3.tmp"));
        assert!(fs::read_dir(notes).unwrap().next().is_none());
    }
}
