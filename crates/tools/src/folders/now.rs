//! What is at a path now, and whether that is what was recorded.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, FileContent, FileRange};

use crate::beneath::{Error, Place, shape_of};
use crate::show;
use crate::snapshot::objects::has_id;

/// How much is compared at once.
const PIECE: usize = 64 * 1024;
/// The longest content that is hashed as a whole, in bytes.
const HASHED_LIMIT: u64 = 64 * 1024 * 1024;

/// What is at a path; nothing unless said otherwise.
#[derive(Debug, Default)]
pub(super) struct Now {
    there: Option<There>,
}

#[derive(Debug)]
struct There {
    place: Place,
    path: PathBuf,
    shape: FileKind,
    mode: u32,
    size: u64,
}

/// Looks at a path. What is behind a link is another file, which may be meant by another change.
///
/// # Errors
/// If the path leads out of the workspace or through a link.
pub(super) fn now(root: &Path, path: &Path) -> Result<Now, String> {
    let place = match Place::find(root, path) {
        Ok(place) => place,
        Err(Error::Missing(_)) => return Ok(Now::default()),
        Err(error) => return Err(error.to_string()),
    };
    if place.real(root).ok().as_deref() != Some(path) {
        return Err(format!("{} is behind a link now", show::path(path)));
    }
    let stat = match place.stat() {
        Ok(stat) => stat,
        Err(Error::Missing(_)) => return Ok(Now::default()),
        Err(error) => return Err(error.to_string()),
    };
    let (shape, mode) = (shape_of(&stat), stat.st_mode & 0o7777);
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    Ok(Now { there: Some(There { place, path: path.to_owned(), shape, mode, size }) })
}

impl Now {
    /// True if there is anything.
    pub(super) fn is_there(&self) -> bool {
        self.there.is_some()
    }

    /// True if there is something of this shape.
    pub(super) fn is(&self, shape: FileKind) -> bool {
        self.there.as_ref().is_some_and(|there| there.shape == shape)
    }

    /// The permissions, where there are any.
    pub(super) fn mode(&self) -> Option<u32> {
        let there = self.there.as_ref().filter(|there| there.shape != FileKind::Link)?;
        Some(there.mode)
    }

    /// True if this is what was recorded. What was not kept matches nothing.
    ///
    /// # Errors
    /// If the file, or what was kept of it, cannot be read.
    pub(super) fn matches(&self, then: Option<&FileContent>) -> Result<bool, String> {
        let (Some(there), Some(then)) = (&self.there, then) else {
            return Ok(self.there.is_none() && then.is_none());
        };
        let other_mode = then.mode.is_some() && self.mode().is_some() && then.mode != self.mode();
        if there.shape != then.shape || other_mode {
            return Ok(false);
        }
        let Some(body) = then.body.as_ref().filter(|_| then.shape.has_content()) else {
            return Ok(!then.shape.has_content());
        };
        let same = match then.shape {
            FileKind::Link => there.leads_to(body),
            FileKind::File
            | FileKind::Folder
            | FileKind::Pipe
            | FileKind::Socket
            | FileKind::Other => there.holds(body),
        };
        same.map_err(|error| format!("{}: {error}", show::path(&there.path)))
    }
}

impl There {
    fn leads_to(&self, body: &BlobBody) -> io::Result<bool> {
        let target = self.place.target().map_err(io::Error::other)?;
        match body {
            BlobBody::Bytes(bytes) => Ok(*bytes == target),
            BlobBody::Hash(id) => Ok(has_id(&target, id)),
            BlobBody::File(extent) => same(&*target, part(extent)?),
        }
    }

    fn holds(&self, body: &BlobBody) -> io::Result<bool> {
        let mut mine = self.place.open().map_err(io::Error::other)?;
        match body {
            BlobBody::Bytes(bytes) if bytes.len() as u64 != self.size => Ok(false),
            BlobBody::Bytes(bytes) => same(mine, &**bytes),
            BlobBody::Hash(_) if self.size > HASHED_LIMIT => Ok(false),
            BlobBody::Hash(id) => {
                let mut bytes = Vec::new();
                mine.read_to_end(&mut bytes)?;
                Ok(has_id(&bytes, id))
            }
            BlobBody::File(extent) => Ok(extent.length == self.size && same(mine, part(extent)?)?),
        }
    }
}

/// A part of a file, to be read.
pub(crate) fn part(extent: &FileRange) -> io::Result<impl Read + use<>> {
    let mut file = File::open(&extent.file)?;
    file.seek(io::SeekFrom::Start(extent.offset))?;
    Ok(file.take(extent.length))
}

/// True if two things hold the same.
fn same(mut a: impl Read, mut b: impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let (read, other) = (full(&mut a, &mut left)?, full(&mut b, &mut right)?);
        if left[..read] != right[..other] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or there is no more.
fn full(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match from.read(&mut buffer[have..]) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}
