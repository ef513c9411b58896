//! Objects as files in a folder that all nodes can access.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use quintet_kernel::port::{BoxFuture, StorageError};

use super::Objects;
use crate::Error;
use crate::blobs::{TMP_DIR, blocking, is_stored, sync_dir, unavailable, write_file};
use crate::data_dir::create_private;
use crate::uploads::is_safe;

/// Incomplete files that were not written for this long belong to a node that died.
const INCOMPLETE_AGE_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Objects in a folder.
#[derive(Debug)]
pub(super) struct FolderObjects {
    root: Arc<Path>,
}

impl FolderObjects {
    /// Fails if the folder cannot be created.
    pub(super) fn open(root: &Path) -> Result<Self, Error> {
        let incomplete = root.join(TMP_DIR);
        create_private(&incomplete)?;
        sweep(&incomplete);
        Ok(Self { root: root.into() })
    }

    /// The path of an object, in one of 256 subfolders; `None` if the name is not safe.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let (folder, file) = name.split_at_checked(2)?;
        (is_safe(folder) && is_safe(file)).then(|| self.root.join(folder).join(file))
    }
}

impl Objects for FolderObjects {
    fn put(&self, name: &str, content: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        let (root, file) = (Arc::clone(&self.root), self.path(name));
        Box::pin(blocking(move || {
            let file = file.ok_or_else(|| unavailable("no name of an object"))?;
            if !is_stored(&file, &content) {
                write_file(&root, &file, &content).map_err(unavailable)?;
            }
            // Also for an existing file: its writer may not have synced the directory yet.
            sync_dir(file.parent().unwrap_or(&root)).map_err(unavailable)?;
            sync_dir(&root).map_err(unavailable)
        }))
    }

    fn get(&self, name: &str) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let (file, name) = (self.path(name), name.to_owned());
        Box::pin(blocking(move || {
            let missing = || StorageError::Missing(format!("object {name}"));
            fs::read(file.ok_or_else(missing)?).map_err(|error| match error.kind() {
                ErrorKind::NotFound => missing(),
                _ => unavailable(error),
            })
        }))
    }

    fn delete(&self, name: &str) -> BoxFuture<'_, Result<(), StorageError>> {
        let file = self.path(name);
        Box::pin(blocking(move || match file.map(fs::remove_file) {
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => Err(unavailable(error)),
            Some(Ok(()) | Err(_)) | None => Ok(()),
        }))
    }
}

/// Deletes incomplete files of nodes that died.
fn sweep(incomplete: &Path) {
    #[expect(clippy::disallowed_methods, reason = "file times are system times")]
    let now = SystemTime::now();
    for file in fs::read_dir(incomplete).into_iter().flatten().flatten() {
        let written = file.metadata().and_then(|it| it.modified()).ok();
        let age = written.and_then(|written| now.duration_since(written).ok());
        if age.is_some_and(|age| age > INCOMPLETE_AGE_LIMIT) {
            // Another node may have deleted the file first.
            let _ = fs::remove_file(file.path());
        }
    }
}
