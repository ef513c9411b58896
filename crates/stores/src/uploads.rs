//! Files that are written and read in parts.
//!
//! A file appears under its name only when it is complete and synced; `tmp` holds files that are
//! being written.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, StorageError, UploadWriter, Uploads};
use tempfile::NamedTempFile;

use crate::Error;
use crate::blobs::{TMP_DIR, blocking, sync_dir, unavailable};
use crate::data_dir::create_private;

/// Maximum length of a name.
const NAME_LENGTH_LIMIT: usize = 128;

/// Files in a directory.
#[derive(Clone, Debug)]
pub struct FileUploads {
    root: Arc<Path>,
}

impl FileUploads {
    /// Opens a directory of files; creates it if it does not exist.
    pub fn open(root: &Path) -> Result<Self, Error> {
        create_private(&root.join(TMP_DIR))?;
        Ok(Self { root: root.into() })
    }
}

impl Uploads for FileUploads {
    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn UploadWriter>, StorageError>> {
        let root = Arc::clone(&self.root);
        Box::pin(blocking(move || {
            let file = NamedTempFile::new_in(root.join(TMP_DIR)).map_err(unavailable)?;
            Ok(Box::new(PartialUpload { root, spool: Spool::new(file) }) as Box<dyn UploadWriter>)
        }))
    }

    fn part(
        &self,
        name: &str,
        from: u64,
        length: usize,
    ) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let (path, name) = (path(&self.root, name), name.to_owned());
        Box::pin(blocking(move || {
            let missing = || StorageError::Missing(format!("file {name}"));
            read(&path.ok_or_else(missing)?, from, length).map_err(|error| match error.kind() {
                ErrorKind::NotFound => missing(),
                _ => unavailable(error),
            })
        }))
    }

    fn remove(&self, name: &str) -> BoxFuture<'_, Result<(), StorageError>> {
        let path = path(&self.root, name);
        Box::pin(blocking(move || match path.map(fs::remove_file) {
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => Err(unavailable(error)),
            Some(_) | None => Ok(()),
        }))
    }

    fn names(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        let root = Arc::clone(&self.root);
        Box::pin(blocking(move || names(&root).map_err(unavailable)))
    }
}

/// An upload that has no name yet.
#[derive(Debug)]
struct PartialUpload {
    root: Arc<Path>,
    spool: Spool,
}

impl UploadWriter for PartialUpload {
    fn write(&mut self, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.spool.write(bytes))
    }

    fn commit(self: Box<Self>, name: &str) -> BoxFuture<'static, Result<(), StorageError>> {
        let path = path(&self.root, name);
        Box::pin(blocking(move || {
            let (file, path) = (self.spool.into_file()?, path.ok_or_else(broken_upload)?);
            file.as_file().sync_all().map_err(unavailable)?;
            file.persist(path).map_err(unavailable)?;
            sync_dir(&self.root).map_err(unavailable)
        }))
    }
}

/// A temporary file that content is written to.
#[derive(Debug)]
pub(crate) struct Spool {
    /// `None` while a write is in progress.
    file: Option<NamedTempFile>,
}

impl Spool {
    pub(crate) fn new(file: NamedTempFile) -> Self {
        Self { file: Some(file) }
    }

    pub(crate) async fn write(&mut self, bytes: Vec<u8>) -> Result<(), StorageError> {
        let file = self.file.take();
        let written = blocking(move || {
            let mut file = file.ok_or_else(broken_upload)?;
            file.write_all(&bytes).map_err(unavailable)?;
            Ok(file)
        });
        self.file = Some(written.await?);
        Ok(())
    }

    /// The complete file; fails if a write failed.
    pub(crate) fn into_file(self) -> Result<NamedTempFile, StorageError> {
        self.file.ok_or_else(broken_upload)
    }
}

/// The error for an upload whose earlier write failed or was cancelled.
fn broken_upload() -> StorageError {
    unavailable("the upload cannot be gone on with")
}

fn read(path: &Path, from: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn names(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.extend(entry.file_name().into_string().ok());
        }
    }
    names.sort();
    Ok(names)
}

/// The path of a file; `None` if the name is not safe.
fn path(root: &Path, name: &str) -> Option<PathBuf> {
    is_safe(name).then(|| root.join(name))
}

/// True if a name is a plain file name.
pub(crate) fn is_safe(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let safe = name.len() <= NAME_LENGTH_LIMIT && name.bytes().all(plain) && name != TMP_DIR;
    safe && !name.is_empty() && !name.starts_with('.')
}
