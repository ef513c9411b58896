//! An incomplete file.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Result, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The beginning of a file, locked against other processes.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Part {
    /// Opens the file of the last attempt; `None` if another process has it open.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let part = Self::at(part_of(path))?;
        Ok(part.file.try_lock().is_ok().then_some(part))
    }

    /// Opens a file without a lock.
    pub(super) fn at(path: PathBuf) -> Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).truncate(false).read(true).write(true).open(&path)?;
        let len = file.seek(SeekFrom::End(0))?;
        Ok(Self { path, file, len })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Drops everything after `len` bytes.
    pub(super) fn truncate(&mut self, len: u64) -> Result<()> {
        if len != self.len {
            self.file.set_len(len)?;
        }
        self.len = self.file.seek(SeekFrom::Start(len))?;
        Ok(())
    }

    /// The SHA-256 of the current content.
    pub(super) async fn sha256(&mut self) -> Result<String> {
        let path = self.path.clone();
        let hashing = tokio::task::spawn_blocking(move || sha256(&path));
        hashing.await.map_err(std::io::Error::other)?
    }

    /// Renames the complete file to its final name.
    pub(super) fn commit(self, name: &Path) -> Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, name)
    }

    pub(super) fn remove(self) {
        // A leftover only takes space.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The name of a file while it is downloaded.
pub(super) fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// The SHA-256 of a file. Reads all of it.
pub(super) fn sha256(path: &Path) -> Result<String> {
    let (mut file, mut hash, mut block) = (File::open(path)?, Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hex::encode(hash.finalize())),
            read => hash.update(&block[..read]),
        }
    }
}
