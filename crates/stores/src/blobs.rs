//! Blobs as files named by their SHA-256, in `ab/cdef…`.
//!
//! A file appears under its name only when it is complete and synced; `tmp` holds files that
//! are being written.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, Blobs, BoxFuture, FileRange, StorageError};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use crate::Error;
use crate::data_dir::create_private;

pub(crate) const TMP_DIR: &str = "tmp";
/// Lists the blobs that were stored since the last start, one per line.
const PUT_LIST: &str = "put";
const HEX_DIGITS: usize = 64;
/// Bytes per read of a file.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Blobs in a directory.
#[derive(Clone, Debug)]
pub struct FileBlobs {
    root: Arc<Path>,
}

impl FileBlobs {
    /// Opens a directory of blobs; creates it if it does not exist. Fails if it cannot be
    /// created.
    pub fn open(root: &Path) -> Result<Self, Error> {
        create_private(&root.join(TMP_DIR))?;
        Ok(Self { root: root.into() })
    }

    /// Deletes a blob by name, if it exists. The caller must have exclusive access to the
    /// directory.
    pub(crate) fn delete(root: &Path, name: &str) -> io::Result<()> {
        let path = BlobId::parse(name).and_then(|blob| path(root, &blob));
        match path.map(fs::remove_file) {
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => Err(error),
            Some(Ok(()) | Err(_)) | None => Ok(()),
        }
    }

    /// The blobs that were stored since [`Self::clear_recently_put`]. They may be
    /// unreferenced, if their command was refused.
    pub(crate) fn recently_put(root: &Path) -> io::Result<Vec<BlobId>> {
        match fs::read_to_string(root.join(PUT_LIST)) {
            Ok(list) => Ok(list.lines().filter_map(BlobId::parse).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Clears the list of recently stored blobs. The caller must have exclusive access to
    /// the directory.
    pub(crate) fn clear_recently_put(root: &Path) -> io::Result<()> {
        match fs::remove_file(root.join(PUT_LIST)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Deletes incomplete files. The caller must have exclusive access to the directory.
    pub(crate) fn sweep(root: &Path) -> Result<(), Error> {
        let tmp = root.join(TMP_DIR);
        match fs::remove_dir_all(&tmp) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::unusable(&tmp)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Blobs for FileBlobs {
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>> {
        Box::pin(async move {
            let mut blobs = self.put_all(vec![BlobBody::Bytes(content)]).await?;
            blobs.pop().ok_or_else(|| unavailable("no blob was kept"))
        })
    }

    fn put_all(&self, contents: Vec<BlobBody>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>> {
        let root = Arc::clone(&self.root);
        Box::pin(blocking(move || write_all(&root, contents)))
    }

    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let (root, blob) = (Arc::clone(&self.root), blob.clone());
        Box::pin(blocking(move || read(&root, &blob)))
    }

    fn body(&self, blob: &BlobId, most: u64) -> BoxFuture<'_, Result<BlobBody, StorageError>> {
        let (root, blob) = (Arc::clone(&self.root), blob.clone());
        Box::pin(blocking(move || read_or_locate(&root, &blob, most)))
    }
}

/// The id of content.
pub(crate) fn blob_id(content: &[u8]) -> BlobId {
    id_of_hash(Sha256::digest(content))
}

/// The id of a file's content, of any length.
fn file_blob_id(file: &mut File) -> io::Result<BlobId> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; READ_BUFFER_BYTES]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(id_of_hash(hash.finalize())),
            read => hash.update(&piece[..read]),
        }
    }
}

pub(crate) fn id_of_hash(hash: impl AsRef<[u8]>) -> BlobId {
    BlobId::parse(&hex::encode(hash)).expect("hex digits make an id")
}

/// The content in memory; `None` if there is nothing to store.
pub(crate) fn read_body(content: BlobBody) -> Result<Option<Vec<u8>>, StorageError> {
    match content {
        BlobBody::Bytes(bytes) => Ok(Some(bytes)),
        BlobBody::File(extent) => {
            let mut bytes = Vec::new();
            open_range(&extent)
                .and_then(|mut part| part.read_to_end(&mut bytes))
                .map_err(unavailable)?;
            Ok(Some(bytes))
        }
        BlobBody::Hash(_) => Ok(None),
    }
}

/// Opens a part of a file for reading.
pub(crate) fn open_range(extent: &FileRange) -> io::Result<impl io::Read + use<>> {
    let mut file = File::open(&extent.file)?;
    file.seek(io::SeekFrom::Start(extent.offset))?;
    Ok(file.take(extent.length))
}

/// Writes contents one by one and syncs their directories once.
fn write_all(root: &Path, contents: Vec<BlobBody>) -> Result<Vec<BlobId>, StorageError> {
    let mut blobs = Vec::with_capacity(contents.len());
    let mut shards = BTreeSet::new();
    for content in contents {
        if let BlobBody::Hash(blob) = content {
            blobs.push(blob);
            continue;
        }
        let content = read_body(content)?.unwrap_or_default();
        let (blob, path) = write(root, &content).map_err(unavailable)?;
        shards.insert(path.parent().unwrap_or(root).to_owned());
        blobs.push(blob);
    }
    // Also for existing files: the writer of one may not have synced its directory yet.
    shards.iter().try_for_each(|shard| sync_dir(shard)).map_err(unavailable)?;
    sync_dir(root).map_err(unavailable)?;
    Ok(blobs)
}

/// Writes content; returns its id and path.
fn write(root: &Path, content: &[u8]) -> io::Result<(BlobId, PathBuf)> {
    let blob = blob_id(content);
    let path = path(root, &blob).expect("a generated id is a SHA-256");
    if !is_stored(&path, content) {
        // Not synced: at worst a power failure leaves an unreferenced blob.
        let mut list = File::options().append(true).create(true).open(root.join(PUT_LIST))?;
        list.write_all(format!("{blob}\n").as_bytes())?;
        write_file(root, &path, content)?;
    }
    Ok((blob, path))
}

/// Writes a file of a directory of blobs and syncs it, but not the directories above it.
pub(crate) fn write_file(root: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(root.join(TMP_DIR))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    file.persist(path)?;
    Ok(())
}

pub(crate) fn is_stored(path: &Path, content: &[u8]) -> bool {
    fs::read(path).is_ok_and(|found| found == content)
}

pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn read(root: &Path, blob: &BlobId) -> Result<Vec<u8>, StorageError> {
    let missing = || StorageError::Missing(format!("blob {blob}"));
    let path = path(root, blob).ok_or_else(missing)?;
    let content = fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(),
        _ => unavailable(error),
    })?;
    if blob_id(&content) != *blob {
        return Err(StorageError::Damaged(format!("blob {blob}")));
    }
    Ok(content)
}

/// Reads a short blob; verifies a longer one and returns its file.
fn read_or_locate(root: &Path, blob: &BlobId, most: u64) -> Result<BlobBody, StorageError> {
    let long = path(root, blob).filter(|path| path.metadata().is_ok_and(|it| it.len() > most));
    let Some(path) = long else { return read(root, blob).map(BlobBody::Bytes) };
    let found =
        File::open(&path).and_then(|mut file| file_blob_id(&mut file)).map_err(unavailable)?;
    if found != *blob {
        return Err(StorageError::Damaged(format!("blob {blob}")));
    }
    let length = path.metadata().map_err(unavailable)?.len();
    Ok(BlobBody::File(FileRange { file: path, offset: 0, length }))
}

/// The path of a blob; `None` if the id is not a SHA-256.
fn path(root: &Path, blob: &BlobId) -> Option<PathBuf> {
    let hex = blob.as_str();
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let whole = hex.len() == HEX_DIGITS && hex.bytes().all(is_hex);
    whole.then(|| root.join(&hex[..2]).join(&hex[2..]))
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(unavailable(error)))
}

pub(crate) fn unavailable(error: impl ToString) -> StorageError {
    StorageError::Unavailable(error.to_string())
}
