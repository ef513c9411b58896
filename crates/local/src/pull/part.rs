//! A file that is not whole yet.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Result, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::weights::Weights;

/// The beginning of a file; nobody else writes to it meanwhile.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Part {
    /// Goes on where the last try ended; nothing if somebody else is at it.
    pub(super) fn open(dir: &Path, weights: &Weights) -> Result<Option<Self>> {
        std::fs::create_dir_all(dir)?;
        let part = Self::at(dir.join(format!("{}.part", weights.file())))?;
        Ok(part.file.try_lock().is_ok().then_some(part))
    }

    fn at(path: PathBuf) -> Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).truncate(false).read(true).write(true).open(&path)?;
        let len = file.seek(SeekFrom::End(0))?;
        Ok(Self { path, file, len })
    }

    /// A file next to this one that holds a package for a while.
    pub(super) fn beside(&self, name: &str) -> Result<Self> {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{name}.whl"));
        Self::at(path.into())
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

    /// Gives up everything after so many bytes.
    pub(super) fn cut(&mut self, len: u64) -> Result<()> {
        self.file.set_len(len)?;
        self.len = self.file.seek(SeekFrom::Start(len))?;
        Ok(())
    }

    /// What the file hashes to by now.
    pub(super) async fn sha256(&mut self) -> Result<String> {
        let path = self.path.clone();
        let hashing = tokio::task::spawn_blocking(move || sha256(&path));
        hashing.await.map_err(std::io::Error::other)?
    }

    /// The file is whole and gets its name; what tries left beside it goes.
    pub(super) fn keep(self, name: &Path) -> Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, name)?;
        let (dir, stem) = (self.path.parent(), self.path.file_name().map(|name| name.as_bytes()));
        for entry in dir.into_iter().filter_map(|dir| dir.read_dir().ok()).flatten().flatten() {
            if stem.is_some_and(|stem| entry.file_name().as_bytes().starts_with(stem)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    pub(super) fn remove(self) {
        // A leftover costs room and nothing else.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What a file hashes to. Reads all of it.
pub(super) fn sha256(path: &Path) -> Result<String> {
    let (mut file, mut hash, mut block) = (File::open(path)?, Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect()),
            read => hash.update(&block[..read]),
        }
    }
}
