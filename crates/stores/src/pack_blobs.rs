//! Blobs for undo: a bounded cache in a few large files.
//!
//! One command may change thousands of files, so blobs are appended to a pack instead of each
//! having its own file. Nothing is synced: after a power failure some blobs may be missing or
//! incomplete, which their hash shows. Each pack `N.pack` has an index `N.idx` with 48 bytes per
//! blob: its hash, offset and length. A process never appends to a pack of an earlier one. If the
//! limit is exceeded, the oldest packs are deleted.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, Blobs, BoxFuture, FileRange, StorageError};
use sha2::{Digest, Sha256};

use crate::blobs::{blocking, id_of_hash, open_range, unavailable};
use crate::data_dir::create_private;
use crate::{Error, lock};

/// Length in bytes after which a pack is closed and the next one created.
const PACK_LIMIT: u64 = 128 * 1024 * 1024;
/// Maximum number of blobs in the index; older ones are treated as deleted.
const ROWS_LIMIT: usize = 500_000;
const WRITE_BUFFER_BYTES: usize = 1024 * 1024;
/// Bytes of content in memory while a file is hashed.
const HASH_BUFFER_BYTES: usize = 256 * 1024;

/// Length of an index row: hash, offset and length of a blob.
const ROW_BYTES: usize = 48;
type Hash = [u8; 32];

/// A bounded cache of blobs in pack files.
#[derive(Clone, Debug)]
pub struct PackBlobs {
    packs: Arc<Mutex<Packs>>,
}

#[derive(Debug)]
struct Packs {
    root: PathBuf,
    limit: u64,
    /// The position of each blob; `None` before the first use.
    known: Option<HashMap<Hash, PackPosition>>,
    /// The pack that this process appends to.
    open: Option<Pack>,
    next: u64,
    /// The packs, oldest first, with their lengths.
    lengths: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct PackPosition {
    pack: u64,
    offset: u64,
    length: u64,
}

#[derive(Debug)]
struct Pack {
    number: u64,
    data: BufWriter<File>,
    index: BufWriter<File>,
    length: u64,
}

impl PackBlobs {
    /// Opens a directory of packs of at most `limit` bytes; creates it if it does not
    /// exist.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn open(root: &Path, limit: u64) -> Result<Self, Error> {
        create_private(root)?;
        let packs = Packs {
            root: root.into(),
            limit,
            known: None,
            open: None,
            next: 0,
            lengths: Vec::new(),
        };
        Ok(Self { packs: Arc::new(Mutex::new(packs)) })
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Packs) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let packs = Arc::clone(&self.packs);
        blocking(move || {
            let mut packs = lock(&packs);
            packs.load().map_err(unavailable)?;
            work(&mut packs)
        })
        .await
    }
}

impl Blobs for PackBlobs {
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>> {
        Box::pin(async move {
            let mut blobs = self.put_all(vec![BlobBody::Bytes(content)]).await?;
            blobs.pop().ok_or_else(|| unavailable("no blob was kept"))
        })
    }

    fn put_all(&self, contents: Vec<BlobBody>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>> {
        Box::pin(self.with(move |packs| {
            let blobs = packs.put_all(contents);
            if blobs.is_err() {
                // A partial write is not continued.
                packs.open = None;
            }
            blobs.map_err(unavailable)
        }))
    }

    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let blob = blob.clone();
        Box::pin(self.with(move |packs| packs.read(&blob)))
    }

    fn body(&self, blob: &BlobId, most: u64) -> BoxFuture<'_, Result<BlobBody, StorageError>> {
        let blob = blob.clone();
        Box::pin(self.with(move |packs| match packs.place(&blob)? {
            place if place.length <= most => packs.read(&blob).map(BlobBody::Bytes),
            place => {
                let file = packs.data(place.pack);
                Ok(BlobBody::File(FileRange { file, offset: place.offset, length: place.length }))
            }
        }))
    }
}

impl Packs {
    /// Reads the indexes of earlier processes, once.
    fn load(&mut self) -> io::Result<()> {
        if self.known.is_some() {
            return Ok(());
        }
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.root)?.flatten() {
            let path = entry.path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            match (name.parse::<u64>(), path.extension().is_some_and(|it| it == "pack")) {
                (Ok(number), true) => numbers.push(number),
                (Ok(_), false) if path.is_file() => {}
                // An earlier version stored a file per blob.
                _ if path.is_dir() => fs::remove_dir_all(&path)?,
                _ => {}
            }
        }
        numbers.sort_unstable();
        let mut known = HashMap::new();
        for number in numbers.iter().rev() {
            let rows = fs::read(self.index(*number)).unwrap_or_default();
            let left = ROWS_LIMIT.saturating_sub(known.len());
            for (hash, place) in
                rows.chunks_exact(ROW_BYTES).filter_map(|row| parse(row, *number)).take(left)
            {
                known.entry(hash).or_insert(place);
            }
        }
        let length = |number: &u64| {
            let length = self.data(*number).metadata().map_or(0, |found| found.len());
            (*number, length)
        };
        self.lengths = numbers.iter().map(length).collect();
        self.next = numbers.last().map_or(0, |last| last + 1);
        self.known = Some(known);
        Ok(())
    }

    fn put_all(&mut self, contents: Vec<BlobBody>) -> io::Result<Vec<BlobId>> {
        let first = self.open.as_ref().map_or(self.next, |pack| pack.number);
        let blobs =
            contents.into_iter().map(|content| self.put(content)).collect::<io::Result<_>>()?;
        if let Some(pack) = &mut self.open {
            pack.data.flush()?;
            pack.index.flush()?;
        }
        self.make_room(first);
        Ok(blobs)
    }

    fn put(&mut self, content: BlobBody) -> io::Result<BlobId> {
        let hash = match &content {
            BlobBody::Bytes(bytes) => Sha256::digest(bytes).into(),
            BlobBody::File(extent) => hash(open_range(extent)?)?,
            BlobBody::Hash(blob) => return Ok(blob.clone()),
        };
        if !self.known.as_ref().is_some_and(|known| known.contains_key(&hash)) {
            self.append(hash, &content)?;
        }
        Ok(id_of_hash(hash))
    }

    fn append(&mut self, hash: Hash, content: &BlobBody) -> io::Result<()> {
        if self.open.as_ref().is_none_or(|pack| pack.length > PACK_LIMIT) {
            self.begin()?;
        }
        let Some(pack) = &mut self.open else { return Err(ErrorKind::NotFound.into()) };
        let length = match content {
            BlobBody::Bytes(bytes) => {
                pack.data.write_all(bytes)?;
                bytes.len() as u64
            }
            BlobBody::File(extent) => io::copy(&mut open_range(extent)?, &mut pack.data)?,
            BlobBody::Hash(_) => return Ok(()),
        };
        let place = PackPosition { pack: pack.number, offset: pack.length, length };
        pack.index.write_all(&row(&hash, place))?;
        pack.length += length;
        if let Some((_, total)) = self.lengths.last_mut() {
            *total = pack.length;
        }
        if let Some(known) = &mut self.known {
            if known.len() >= ROWS_LIMIT {
                let oldest = known.values().map(|place| place.pack).min().unwrap_or_default();
                known.retain(|_, place| place.pack > oldest);
            }
            known.insert(hash, place);
        }
        Ok(())
    }

    /// Closes the open pack and creates the next one.
    fn begin(&mut self) -> io::Result<()> {
        if let Some(mut pack) = self.open.take() {
            pack.data.flush()?;
            pack.index.flush()?;
        }
        let number = self.next;
        let create = |path: PathBuf| {
            let file = File::options().write(true).create_new(true).open(path)?;
            Ok::<_, io::Error>(BufWriter::with_capacity(WRITE_BUFFER_BYTES, file))
        };
        let (data, index) = (create(self.data(number))?, create(self.index(number))?);
        self.open = Some(Pack { number, data, index, length: 0 });
        self.next += 1;
        self.lengths.push((number, 0));
        Ok(())
    }

    /// Deletes the oldest packs while the limit is exceeded, except those from `first` on,
    /// which hold the newest blobs.
    fn make_room(&mut self, first: u64) {
        let mut used: u64 = self.lengths.iter().map(|(_, length)| length).sum();
        while used > self.limit
            && let Some((oldest, length)) = self.lengths.first().copied()
            && oldest < first
        {
            for path in [self.data(oldest), self.index(oldest)] {
                if let Err(error) = fs::remove_file(&path) {
                    tracing::warn!(path = %path.display(), %error, "could not delete an old pack");
                }
            }
            self.lengths.remove(0);
            used -= length;
            if let Some(known) = &mut self.known {
                known.retain(|_, place| place.pack != oldest);
            }
        }
    }

    fn place(&self, blob: &BlobId) -> Result<PackPosition, StorageError> {
        let found = hash_of(blob).and_then(|hash| self.known.as_ref()?.get(&hash).copied());
        found.ok_or_else(|| StorageError::Missing(format!("blob {blob}")))
    }

    fn read(&self, blob: &BlobId) -> Result<Vec<u8>, StorageError> {
        let place = self.place(blob)?;
        let length = usize::try_from(place.length).map_err(unavailable)?;
        let mut content = vec![0; length];
        let read = File::open(self.data(place.pack))
            .and_then(|file| file.read_exact_at(&mut content, place.offset));
        // A power failure may have truncated the pack.
        let torn = read.is_err() || id_of_hash(Sha256::digest(&content)) != *blob;
        if torn { Err(StorageError::Missing(format!("blob {blob}"))) } else { Ok(content) }
    }

    fn data(&self, number: u64) -> PathBuf {
        self.root.join(format!("{number:08}.pack"))
    }

    fn index(&self, number: u64) -> PathBuf {
        self.root.join(format!("{number:08}.idx"))
    }
}

fn row(hash: &Hash, place: PackPosition) -> [u8; ROW_BYTES] {
    let mut row = [0; ROW_BYTES];
    row[..32].copy_from_slice(hash);
    row[32..40].copy_from_slice(&place.offset.to_le_bytes());
    row[40..].copy_from_slice(&place.length.to_le_bytes());
    row
}

fn parse(row: &[u8], pack: u64) -> Option<(Hash, PackPosition)> {
    let offset = u64::from_le_bytes(row.get(32..40)?.try_into().ok()?);
    let length = u64::from_le_bytes(row.get(40..48)?.try_into().ok()?);
    Some((row.get(..32)?.try_into().ok()?, PackPosition { pack, offset, length }))
}

fn hash(mut from: impl Read) -> io::Result<Hash> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; HASH_BUFFER_BYTES]);
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(read) => hash.update(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hash_of(blob: &BlobId) -> Option<Hash> {
    let hex = blob.as_str().as_bytes();
    let mut hash = [0; 32];
    if hex.len() != 64 || hex.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests;
