//! Blobs as files named by their SHA-256, in `ab/cdef…`.
//!
//! A file appears under its name only when it is whole and on disk, so what can be found can be
//! trusted; `tmp` holds those that are being written.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{Blobs, Body, BoxFuture, Extent, StorageError};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use crate::Error;
use crate::data_dir::create_private;

pub(crate) const TMP: &str = "tmp";
/// Lists the blobs that were put since the last start, a line each.
const PUT: &str = "put";
const HEX_DIGITS: usize = 64;
/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

/// Blobs in a directory.
#[derive(Clone, Debug)]
pub struct FileBlobs {
    root: Arc<Path>,
}

impl FileBlobs {
    /// Opens a directory of blobs; creates it if it is not there.
    pub fn open(root: &Path) -> Result<Self, Error> {
        create_private(&root.join(TMP))?;
        Ok(Self { root: root.into() })
    }

    /// Deletes one, by its name, if it is there; only for whoever has the directory to himself.
    pub(crate) fn delete(root: &Path, name: &str) -> io::Result<()> {
        let path = BlobId::parse(name).and_then(|blob| path(root, &blob));
        match path.map(fs::remove_file) {
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => Err(error),
            Some(Ok(()) | Err(_)) | None => Ok(()),
        }
    }

    /// The blobs that were put since this was last forgotten; the command that brought one may have been
    /// refused, so that nobody refers to it.
    pub(crate) fn put_lately(root: &Path) -> io::Result<Vec<BlobId>> {
        match fs::read_to_string(root.join(PUT)) {
            Ok(list) => Ok(list.lines().filter_map(BlobId::parse).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Forgets which blobs were put; only for whoever has the directory to himself.
    pub(crate) fn forget_put(root: &Path) -> io::Result<()> {
        match fs::remove_file(root.join(PUT)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Removes what was never finished; only for whoever has the directory to himself.
    pub(crate) fn sweep(root: &Path) -> Result<(), Error> {
        let tmp = root.join(TMP);
        match fs::remove_dir_all(&tmp) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::unusable(&tmp)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Blobs for FileBlobs {
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>> {
        Box::pin(async move {
            let mut blobs = self.put_all(vec![Body::Bytes(content)]).await?;
            blobs.pop().ok_or_else(|| unavailable("no blob was kept"))
        })
    }

    fn put_all(&self, contents: Vec<Body>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>> {
        let root = Arc::clone(&self.root);
        Box::pin(blocking(move || write_all(&root, contents)))
    }

    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let (root, blob) = (Arc::clone(&self.root), blob.clone());
        Box::pin(blocking(move || read(&root, &blob)))
    }

    fn body(&self, blob: &BlobId, most: u64) -> BoxFuture<'_, Result<Body, StorageError>> {
        let (root, blob) = (Arc::clone(&self.root), blob.clone());
        Box::pin(blocking(move || look(&root, &blob, most)))
    }
}

/// The id of some content.
pub(crate) fn name(content: &[u8]) -> BlobId {
    named(Sha256::digest(content))
}

/// The id of what is in a file, however long it is.
fn name_of(file: &mut File) -> io::Result<BlobId> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(named(hash.finalize())),
            read => hash.update(&piece[..read]),
        }
    }
}

pub(crate) fn named(hash: impl AsRef<[u8]>) -> BlobId {
    BlobId::parse(&hex::encode(hash)).expect("hex digits make an id")
}

/// All of it, read if need be; nothing if there is nothing to be kept.
pub(crate) fn held(content: Body) -> Result<Option<Vec<u8>>, StorageError> {
    match content {
        Body::Bytes(bytes) => Ok(Some(bytes)),
        Body::File(extent) => {
            let mut bytes = Vec::new();
            part(&extent).and_then(|mut part| part.read_to_end(&mut bytes)).map_err(unavailable)?;
            Ok(Some(bytes))
        }
        Body::Hash(_) => Ok(None),
    }
}

/// A part of a file, to be read.
pub(crate) fn part(extent: &Extent) -> io::Result<impl io::Read + use<>> {
    let mut file = File::open(&extent.file)?;
    file.seek(io::SeekFrom::Start(extent.offset))?;
    Ok(file.take(extent.length))
}

/// Writes them one by one, and makes their names durable together.
fn write_all(root: &Path, contents: Vec<Body>) -> Result<Vec<BlobId>, StorageError> {
    let mut blobs = Vec::with_capacity(contents.len());
    let mut shards = BTreeSet::new();
    for content in contents {
        if let Body::Hash(blob) = content {
            blobs.push(blob);
            continue;
        }
        let content = held(content)?.unwrap_or_default();
        let (blob, path) = write(root, &content).map_err(unavailable)?;
        shards.insert(path.parent().unwrap_or(root).to_owned());
        blobs.push(blob);
    }
    // Also where a file was there already: whoever put it may not have come this far yet.
    shards.iter().try_for_each(|shard| sync(shard)).map_err(unavailable)?;
    sync(root).map_err(unavailable)?;
    Ok(blobs)
}

/// Writes content; gives its id and where it lies.
fn write(root: &Path, content: &[u8]) -> io::Result<(BlobId, PathBuf)> {
    let blob = name(content);
    let path = path(root, &blob).expect("our own names are whole");
    if !is_kept(&path, content) {
        let mut file = NamedTempFile::new_in(root.join(TMP))?;
        file.write_all(content)?;
        persist(root, file, &blob, &path)?;
    }
    Ok((blob, path))
}

fn persist(root: &Path, file: NamedTempFile, blob: &BlobId, path: &Path) -> io::Result<()> {
    // Not synced: if a power cut takes it, the worst is a blob too many.
    let mut list = File::options().append(true).create(true).open(root.join(PUT))?;
    list.write_all(format!("{blob}\n").as_bytes())?;
    file.as_file().sync_all()?;
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    file.persist(path)?;
    Ok(())
}

fn is_kept(path: &Path, content: &[u8]) -> bool {
    fs::read(path).is_ok_and(|found| found == content)
}

pub(crate) fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn read(root: &Path, blob: &BlobId) -> Result<Vec<u8>, StorageError> {
    let missing = || StorageError::Missing(format!("blob {blob}"));
    let path = path(root, blob).ok_or_else(missing)?;
    let content = fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(),
        _ => unavailable(error),
    })?;
    if name(&content) != *blob {
        return Err(StorageError::Damaged(format!("blob {blob}")));
    }
    Ok(content)
}

/// Reads a blob that is short; a longer one is checked and left in its file.
fn look(root: &Path, blob: &BlobId, most: u64) -> Result<Body, StorageError> {
    let long = path(root, blob).filter(|path| path.metadata().is_ok_and(|it| it.len() > most));
    let Some(path) = long else { return read(root, blob).map(Body::Bytes) };
    let found = File::open(&path).and_then(|mut file| name_of(&mut file)).map_err(unavailable)?;
    match found == *blob {
        true => {
            let length = path.metadata().map_err(unavailable)?.len();
            Ok(Body::File(Extent { file: path, offset: 0, length }))
        }
        false => Err(StorageError::Damaged(format!("blob {blob}"))),
    }
}

/// Where a blob lies; nothing if the id cannot be that of a blob.
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
