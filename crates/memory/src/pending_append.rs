//! A write-ahead record of the entry that is being appended to a file.
//!
//! An entry is appended with one write, but a killed process or a power failure can leave a part of
//! it. The next access finds the record and truncates the partial entry.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use quintet_kernel::memory::MemoryError;
use serde::{Deserialize, Serialize};

use crate::confined_fs::{Root, storage_error};
use crate::paths::FOLDER;

/// The record file of one workspace.
#[derive(Debug)]
pub(crate) struct PendingAppend {
    path: PathBuf,
}

/// An entry that is being appended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Addition {
    pub(crate) path: String,
    /// Size of the file before the append, in bytes.
    pub(crate) offset: u64,
    pub(crate) text: String,
}

impl PendingAppend {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Records an addition; durable on return. The folder must be locked.
    pub(crate) fn record(&self, addition: &Addition) -> Result<(), MemoryError> {
        self.write(addition).map_err(|error| storage_error(&self.path.to_string_lossy(), &error))
    }

    fn write(&self, addition: &Addition) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let new = !self.path.exists();
        if new {
            std::fs::create_dir_all(folder)?;
        }
        let options = OpenOptions::new().write(true).create(true).truncate(true).to_owned();
        let mut file = options.open(&self.path)?;
        file.write_all(&serde_json::to_vec(addition)?)?;
        file.sync_data()?;
        // The file keeps its name, so this happens once.
        if new { File::open(folder)?.sync_all() } else { Ok(()) }
    }

    /// Clears the record: the addition is complete, or was truncated away.
    pub(crate) fn clear(&self) {
        let options = OpenOptions::new().write(true).to_owned();
        if let Err(error) = options.open(&self.path).and_then(|file| file.set_len(0)) {
            tracing::warn!(%error, "could not clear the record of a finished memory entry");
        }
    }

    /// Truncates a partial entry that a crash left.
    pub(crate) fn repair(&self, root: &Root) {
        if self.path.metadata().is_ok_and(|found| found.len() > 0) {
            let repaired = root.locked(FOLDER).and_then(|_lock| self.repair_locked(root));
            if let Err(error) = repaired {
                tracing::warn!(%error, "could not truncate a partial memory entry");
            }
        }
    }

    /// Truncates a partial entry; the folder must be locked. Fails if the file cannot be written.
    pub(crate) fn repair_locked(&self, root: &Root) -> Result<(), MemoryError> {
        // An unreadable record was never complete, so nothing was appended after it.
        if let Some(addition) = self.read()
            && let Some(file) = root.writable(&addition.path)?
        {
            cut_partial_entry(&file, &addition)
                .map_err(|error| storage_error(&addition.path, &error))?;
        }
        if self.path.exists() {
            self.clear();
        }
        Ok(())
    }

    fn read(&self) -> Option<Addition> {
        let mut bytes = Vec::new();
        File::open(&self.path).ok()?.read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// Truncates a partial addition. Text that another program wrote since stays.
fn cut_partial_entry(file: &File, addition: &Addition) -> io::Result<()> {
    let metadata = file.metadata()?;
    let whole = addition.text.as_bytes();
    let added = metadata.len().saturating_sub(addition.offset);
    if !metadata.is_file() || added == 0 || added >= whole.len() as u64 {
        return Ok(());
    }
    let mut found = vec![0; usize::try_from(added).unwrap_or(0)];
    file.read_exact_at(&mut found, addition.offset)?;
    if whole.starts_with(&found) {
        tracing::warn!(path = addition.path, "truncated a partial memory entry");
        file.set_len(addition.offset)?;
        file.sync_data()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repairs a file that a crash left with the content `left` while `text` was appended to
    /// `before`.
    #[track_caller]
    fn check(before: &str, text: &str, left: &str, expected: &str) {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join(FOLDER)).unwrap();
        std::fs::write(folder.path().join("memory/MEMORY.md"), left).unwrap();
        let pending = PendingAppend::new(folder.path().join("cache/pending"));
        let (path, offset) = ("memory/MEMORY.md".to_owned(), before.len() as u64);
        pending.record(&Addition { path, offset, text: text.to_owned() }).unwrap();
        let root = Root::open(folder.path()).unwrap();
        pending.repair(&root);
        pending.repair(&root);
        let found = std::fs::read_to_string(folder.path().join("memory/MEMORY.md")).unwrap();
        assert_eq!(found, expected, "{left:?}");
        assert_eq!(std::fs::metadata(folder.path().join("cache/pending")).unwrap().len(), 0);
    }

    #[test]
    fn a_partial_entry_is_truncated() {
        check("old\n", "\nnew entry\n", "old\n\nnew e", "old\n");
        check("old\n", "\nnew entry\n", "old\n\n", "old\n");
        check("", "new\n", "n", "");
    }

    #[test]
    fn complete_entries_and_text_of_others_stay() {
        for left in ["old\n", "old\n\nnew\n", "old\n\nnew\n\nmore\n", "old\nedit", "ol"] {
            check("old\n", "\nnew\n", left, left);
        }
    }

    #[test]
    fn an_incomplete_record_is_ignored() {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join("pending"), "{\"path\":\"memory/MEM").unwrap();
        let root = Root::open(folder.path()).unwrap();
        PendingAppend::new(folder.path().join("pending")).repair(&root);
        assert_eq!(std::fs::read(folder.path().join("pending")).unwrap(), b"");
    }
}
