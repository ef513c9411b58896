//! What is at a path now, and whether that is what was recorded.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _};
use std::path::Path;

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, FileContent, FileRange};

use super::git_objects::has_id;
use crate::confined_fs::{ConfinedPath, PathError, shape_of};
use crate::show;

/// The longest content that is hashed as a whole, in bytes.
const HASHED_LIMIT: u64 = 64 * 1024 * 1024;

/// Something that is there.
#[derive(Debug)]
pub(super) struct Current {
    place: ConfinedPath,
    pub(super) shape: FileKind,
    mode: u32,
    size: u64,
}

/// Looks at a path; nothing if nothing is there. What is behind a link is another file, which may be
/// meant by another change.
///
/// # Errors
/// If the path leads out of the workspace or through a link.
pub(super) fn current(root: &Path, path: &Path) -> Result<Option<Current>, String> {
    let found = ConfinedPath::find(root, path).map(|place| (place.stat(), place));
    let (stat, place) = match found {
        Ok(found) => found,
        Err(PathError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if place.real(root).ok().as_deref() != Some(path) {
        return Err(format!("{} is behind a link now", show::path(path)));
    }
    let stat = match stat {
        Ok(stat) => stat,
        Err(PathError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    Ok(Some(Current { place, shape: shape_of(&stat), mode: stat.st_mode & 0o7777, size }))
}

/// True if what is there is what was recorded. What was not kept matches nothing.
///
/// # Errors
/// If the file, or what was kept of it, cannot be read.
pub(super) fn matches(
    now: Option<&Current>,
    recorded: Option<&FileContent>,
) -> Result<bool, String> {
    match (now, recorded) {
        (Some(now), Some(recorded)) => now.matches(recorded),
        (now, recorded) => Ok(now.is_none() && recorded.is_none()),
    }
}

impl Current {
    /// The permissions, where there are any.
    pub(super) fn mode(&self) -> Option<u32> {
        (self.shape != FileKind::Link).then_some(self.mode)
    }

    fn matches(&self, recorded: &FileContent) -> Result<bool, String> {
        let modes = recorded.mode.zip(self.mode());
        if self.shape != recorded.shape || modes.is_some_and(|(one, other)| one != other) {
            return Ok(false);
        }
        if !self.shape.has_content() {
            return Ok(true);
        }
        let Some(body) = &recorded.body else { return Ok(false) };
        let same = self.holds(body);
        same.map_err(|error| format!("{}: {error}", show::path(self.place.given())))
    }

    fn holds(&self, body: &BlobBody) -> io::Result<bool> {
        let length = match body {
            BlobBody::Bytes(bytes) => bytes.len() as u64,
            BlobBody::File(extent) => extent.length,
            BlobBody::Hash(_) => self.size,
        };
        if length != self.size {
            return Ok(false);
        }
        let content: Box<dyn Read> = match self.shape {
            FileKind::Link => {
                Box::new(io::Cursor::new(self.place.target().map_err(io::Error::other)?))
            }
            _ => Box::new(self.place.open().map_err(io::Error::other)?),
        };
        match body {
            BlobBody::Bytes(bytes) => same(content, &**bytes),
            BlobBody::File(extent) => same(content, part(extent)?),
            BlobBody::Hash(id) => {
                let mut bytes = Vec::new();
                content.take(HASHED_LIMIT).read_to_end(&mut bytes)?;
                Ok(has_id(&bytes, id))
            }
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
fn same(one: impl Read, other: impl Read) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if length == 0 {
            return Ok(left.len() == right.len());
        }
        if left[..length] != right[..length] {
            return Ok(false);
        }
        one.consume(length);
        other.consume(length);
    }
}
