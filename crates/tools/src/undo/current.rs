//! What is at a path now, and whether that is what was recorded.

use std::io::{self, Read as _};
use std::path::Path;

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, FileContent};

use super::git_objects::has_id;
use crate::confined_fs::{ConfinedPath, PathError, read_range, shape_of};
use crate::show;

/// The longest content that is read, in bytes.
const READ_LIMIT: u64 = 64 * 1024 * 1024;

/// Something that is there.
#[derive(Debug)]
pub(super) struct Current {
    place: ConfinedPath,
    pub(super) shape: FileKind,
    /// The permissions, where there are any.
    pub(super) mode: Option<u32>,
    size: u64,
}

/// Looks at a path; nothing if nothing is there. What is behind a link is another file, which may be
/// meant by another change.
///
/// # Errors
/// If the path leads out of the workspace or through a link.
pub(super) fn current(root: &Path, path: &Path) -> Result<Option<Current>, String> {
    let look = || {
        let place = ConfinedPath::find(root, path)?;
        if place.real(root).ok().as_deref() != Some(path) {
            return Ok(None);
        }
        let stat = place.stat()?;
        let (shape, size) = (shape_of(&stat), u64::try_from(stat.st_size).unwrap_or_default());
        let mode = (shape != FileKind::Link).then_some(stat.st_mode & 0o7777);
        Ok(Some(Current { place, shape, mode, size }))
    };
    match look() {
        Ok(Some(current)) => Ok(Some(current)),
        Ok(None) => Err(format!("{} is behind a link now", show::path(path))),
        Err(PathError::Missing(_)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// True if what is there is what was recorded. What was not kept matches nothing.
///
/// # Errors
/// If the file, or what was kept of it, cannot be read.
pub(super) fn matches(
    now: Option<&Current>,
    recorded: Option<&FileContent>,
) -> Result<bool, String> {
    let (Some(now), Some(recorded)) = (now, recorded) else {
        return Ok(now.is_none() && recorded.is_none());
    };
    let modes = recorded.mode.zip(now.mode);
    if now.shape != recorded.shape || modes.is_some_and(|(one, other)| one != other) {
        return Ok(false);
    }
    if !now.shape.has_content() {
        return Ok(true);
    }
    let same = recorded.body.as_ref().map_or(Ok(false), |body| now.holds(body));
    same.map_err(|error| format!("{}: {error}", show::path(now.place.given())))
}

impl Current {
    /// What is there, to be recorded: long files without their content, and nothing of pipes and the
    /// like.
    pub(super) fn record(&self) -> io::Result<Option<FileContent>> {
        let &Self { shape, mode, size, .. } = self;
        let body = match shape {
            FileKind::File | FileKind::Link if size <= READ_LIMIT => {
                Some(BlobBody::Bytes(self.content()?))
            }
            FileKind::File | FileKind::Link | FileKind::Folder => None,
            FileKind::Pipe | FileKind::Socket | FileKind::Other => return Ok(None),
        };
        let size = if shape == FileKind::Folder { 0 } else { size };
        Ok(Some(FileContent { body, size, mode, shape }))
    }

    fn holds(&self, body: &BlobBody) -> io::Result<bool> {
        Ok(match body {
            BlobBody::Bytes(bytes) => bytes.len() as u64 == self.size && self.content()? == **bytes,
            BlobBody::File(range) => {
                range.length == self.size && self.content()? == read_range(range)?
            }
            BlobBody::Hash(id) => has_id(&self.content()?, id),
        })
    }

    fn content(&self) -> io::Result<Vec<u8>> {
        if self.shape == FileKind::Link {
            return self.place.target().map_err(io::Error::other);
        }
        let (file, mut bytes) = (self.place.open().map_err(io::Error::other)?, Vec::new());
        file.take(READ_LIMIT).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
