//! What is just being added to a file, written down first: whoever comes after a crash takes away what
//! there is of an entry that is not whole.
//!
//! One write adds an entry, but a process that is killed, or a machine that loses power, can leave
//! part of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use quintet_kernel::memory::Error;
use serde::{Deserialize, Serialize};

use crate::beneath::{Root, storage};
use crate::name::FOLDER;

/// The place where it is written down, for one workspace.
#[derive(Debug)]
pub(crate) struct Pending {
    path: PathBuf,
}

/// What is just being added.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Addition {
    pub(crate) path: String,
    /// How long the file was before.
    pub(crate) offset: u64,
    pub(crate) text: String,
}

impl Pending {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes an addition down; durable on return. Only with the folder locked.
    pub(crate) fn note(&self, addition: &Addition) -> Result<(), Error> {
        self.write(addition).map_err(|error| storage(&self.path.to_string_lossy(), &error))
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
        // The name stays, so this happens once.
        if new { File::open(folder)?.sync_all() } else { Ok(()) }
    }

    /// The addition is whole, or gone.
    pub(crate) fn clear(&self) {
        let options = OpenOptions::new().write(true).to_owned();
        if let Err(error) = options.open(&self.path).and_then(|file| file.set_len(0)) {
            tracing::warn!(%error, "what was being added to memory is still written down");
        }
    }

    /// Takes away what is not whole, if a crash left something.
    pub(crate) fn heal(&self, root: &Root) {
        if self.path.metadata().is_ok_and(|found| found.len() > 0) {
            let healed = root.locked(FOLDER).and_then(|_lock| self.heal_locked(root));
            if let Err(error) = healed {
                tracing::warn!(%error, "memory could not be repaired");
            }
        }
    }

    /// The same, with the folder locked.
    pub(crate) fn heal_locked(&self, root: &Root) -> Result<(), Error> {
        // One that cannot be read was never finished, so nothing was added after it.
        if let Some(addition) = self.read()
            && let Some(file) = root.writable(&addition.path)?
        {
            repair(&file, &addition).map_err(|error| storage(&addition.path, &error))?;
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

/// Cuts off an addition that broke off. What somebody else wrote since is left alone.
fn repair(file: &File, addition: &Addition) -> io::Result<()> {
    let metadata = file.metadata()?;
    let whole = addition.text.as_bytes();
    let added = metadata.len().saturating_sub(addition.offset);
    if !metadata.is_file() || added == 0 || added >= whole.len() as u64 {
        return Ok(());
    }
    let mut found = vec![0; usize::try_from(added).unwrap_or(0)];
    file.read_exact_at(&mut found, addition.offset)?;
    if whole.starts_with(&found) {
        tracing::warn!(path = addition.path, "an entry that was not whole was taken away");
        file.set_len(addition.offset)?;
        file.sync_data()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a file that a crash left so, while `text` was added to `before`.
    #[track_caller]
    fn check(before: &str, text: &str, left: &str, expected: &str) {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join(FOLDER)).unwrap();
        std::fs::write(folder.path().join("memory/MEMORY.md"), left).unwrap();
        let pending = Pending::new(folder.path().join("cache/pending"));
        let (path, offset) = ("memory/MEMORY.md".to_owned(), before.len() as u64);
        pending.note(&Addition { path, offset, text: text.to_owned() }).unwrap();
        let root = Root::open(folder.path()).unwrap();
        pending.heal(&root);
        pending.heal(&root);
        let found = std::fs::read_to_string(folder.path().join("memory/MEMORY.md")).unwrap();
        assert_eq!(found, expected, "{left:?}");
        assert_eq!(std::fs::metadata(folder.path().join("cache/pending")).unwrap().len(), 0);
    }

    #[test]
    fn half_an_entry_is_taken_away() {
        check("old\n", "\nnew entry\n", "old\n\nnew e", "old\n");
        check("old\n", "\nnew entry\n", "old\n\n", "old\n");
        check("", "new\n", "n", "");
    }

    #[test]
    fn what_is_whole_or_somebody_elses_stays() {
        for left in ["old\n", "old\n\nnew\n", "old\n\nnew\n\nmore\n", "old\nedit", "ol"] {
            check("old\n", "\nnew\n", left, left);
        }
    }

    #[test]
    fn a_note_that_was_not_finished_says_nothing() {
        let folder = tempfile::TempDir::new().unwrap();
        std::fs::write(folder.path().join("pending"), "{\"path\":\"memory/MEM").unwrap();
        let root = Root::open(folder.path()).unwrap();
        Pending::new(folder.path().join("pending")).heal(&root);
        assert_eq!(std::fs::read(folder.path().join("pending")).unwrap(), b"");
    }
}
