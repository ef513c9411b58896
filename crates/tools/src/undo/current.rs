//! The file that is at a path now, and whether it is as recorded.

use std::io::{self, Read as _};
use std::path::Path;

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, FileContent};

use super::git_objects::has_id;
use crate::confined_fs::{ConfinedPath, PathError, read_range, shape_of};
use crate::show;

/// The most bytes of a file that are read.
const READ_LIMIT: u64 = 64 * 1024 * 1024;

/// A file, link or folder that exists.
#[derive(Debug)]
pub(super) struct Current {
    place: ConfinedPath,
    pub(super) kind: FileKind,
    /// The permissions; links have none.
    pub(super) mode: Option<u32>,
    size: u64,
}

/// The file at a path; `None` if there is none.
///
/// # Errors
/// If the path leads out of the workspace, or through a link: that is another file with its own changes.
pub(super) fn current(root: &Path, path: &Path) -> Result<Option<Current>, String> {
    let look = || {
        let place = ConfinedPath::find(root, path)?;
        if place.real(root).ok().as_deref() != Some(path) {
            return Ok(None);
        }
        let stat = place.stat()?;
        let (kind, size) = (shape_of(&stat), u64::try_from(stat.st_size).unwrap_or_default());
        let mode = (kind != FileKind::Link).then_some(stat.st_mode & 0o7777);
        Ok(Some(Current { place, kind, mode, size }))
    };
    match look() {
        Ok(Some(current)) => Ok(Some(current)),
        Ok(None) => Err(format!("{} is behind a link now", show::path(path))),
        Err(PathError::Missing(_)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// True if a file is as recorded. Content that was not stored matches nothing.
///
/// # Errors
/// If the file, or its stored content, cannot be read.
pub(super) fn matches(
    now: Option<&Current>,
    recorded: Option<&FileContent>,
) -> Result<bool, String> {
    let (Some(now), Some(recorded)) = (now, recorded) else {
        return Ok(now.is_none() && recorded.is_none());
    };
    let modes = recorded.mode.zip(now.mode);
    if now.kind != recorded.shape || modes.is_some_and(|(one, other)| one != other) {
        return Ok(false);
    }
    let same = match &recorded.body {
        _ if !now.kind.has_content() => Ok(true),
        Some(body) => now.holds(body),
        None => Ok(false),
    };
    same.map_err(|error| format!("{}: {error}", show::path(now.place.given())))
}

impl Current {
    /// What is recorded of the file: large ones without content, and nothing of pipes and devices.
    pub(super) fn record(&self) -> io::Result<Option<FileContent>> {
        let &Self { kind: shape, mode, size, .. } = self;
        Ok(match shape {
            FileKind::Folder => Some(FileContent { body: None, size: 0, mode, shape }),
            FileKind::File | FileKind::Link => {
                let content = (size <= READ_LIMIT).then(|| self.content()).transpose()?;
                Some(FileContent { body: content.map(BlobBody::Bytes), size, mode, shape })
            }
            FileKind::Pipe | FileKind::Socket | FileKind::Other => None,
        })
    }

    fn holds(&self, body: &BlobBody) -> io::Result<bool> {
        Ok(match body {
            BlobBody::Bytes(bytes) => bytes.len() as u64 == self.size && self.content()? == **bytes,
            BlobBody::File(it) => it.length == self.size && self.content()? == read_range(it)?,
            BlobBody::Hash(id) => has_id(&self.content()?, id),
        })
    }

    fn content(&self) -> io::Result<Vec<u8>> {
        if self.kind == FileKind::Link {
            return self.place.target().map_err(io::Error::other);
        }
        let (file, mut bytes) = (self.place.open().map_err(io::Error::other)?, Vec::new());
        file.take(READ_LIMIT).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
