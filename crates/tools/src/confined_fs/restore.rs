//! Creates a file, link, folder or pipe at a path. The content is in memory or is copied from another file.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, FileContent, FileRange};
use rustix::fs::{AtFlags, FileType, Mode, chmodat, fchmod, mkdirat, mknodat};

use super::{ConfinedPath, Existing, PathError};

/// The permissions of a new folder whose former ones are unknown.
const FOLDER_MODE: u32 = 0o777;

/// Something to be put in a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewFile<'a> {
    pub(super) filling: NewContent<'a>,
    /// The permissions; the usual ones if they are not known.
    pub(super) mode: Option<u32>,
    pub(super) shape: FileKind,
}

/// What will be in it.
#[derive(Clone, Copy, Debug)]
pub(super) enum NewContent<'a> {
    Bytes(&'a [u8]),
    File(&'a FileRange),
}

impl NewFile<'_> {
    pub(super) fn fill(&self, mut file: File) -> io::Result<()> {
        match self.filling {
            NewContent::Bytes(bytes) => file.write_all(bytes)?,
            NewContent::File(from) => {
                io::copy(&mut open_range(from)?, &mut file)?;
            }
        }
        if let Some(mode) = self.mode {
            fchmod(&file, Mode::from_raw_mode(mode))?;
        }
        // Without this a crash of the machine could leave the new name with nothing in it.
        file.sync_data()
    }
}

impl ConfinedPath {
    /// Puts something here, whole or not at all. Only a file or a link takes the place of another.
    pub(crate) fn restore(
        &self,
        content: &FileContent,
        existing: Existing,
    ) -> Result<(), PathError> {
        let (at, name) = self.parts();
        let made = match content.shape {
            FileKind::File | FileKind::Link => return self.put(&self.load(content)?, existing),
            FileKind::Folder => mkdirat(at, name, Mode::from_raw_mode(FOLDER_MODE)),
            FileKind::Pipe => mknodat(at, name, FileType::Fifo, Mode::from_raw_mode(0o666), 0),
            FileKind::Socket | FileKind::Other => {
                return Err(PathError::Special(self.given().to_owned()));
            }
        };
        made.map_err(|errno| self.explain(errno))?;
        content.mode.map_or(Ok(()), |mode| self.allow(mode))
    }

    /// Sets the permissions of the file or folder here.
    pub(crate) fn allow(&self, mode: u32) -> Result<(), PathError> {
        let (at, name) = self.parts();
        let set = chmodat(at, name, Mode::from_raw_mode(mode), AtFlags::empty());
        set.map_err(|errno| self.explain(errno))
    }

    fn load<'a>(&self, content: &'a FileContent) -> Result<NewFile<'a>, PathError> {
        let filling = match &content.body {
            Some(BlobBody::Bytes(bytes)) => NewContent::Bytes(bytes),
            Some(BlobBody::File(extent)) => NewContent::File(extent),
            Some(BlobBody::Hash(_)) | None => {
                return Err(PathError::Special(self.given().to_owned()));
            }
        };
        Ok(NewFile { filling, mode: content.mode, shape: content.shape })
    }
}

/// A part of a file, to be read.
fn open_range(range: &FileRange) -> io::Result<impl Read + use<>> {
    let mut file = File::open(&range.file)?;
    file.seek(io::SeekFrom::Start(range.offset))?;
    Ok(file.take(range.length))
}

/// What is in a part of a file, whole.
pub(crate) fn read_range(range: &FileRange) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_range(range)?.read_to_end(&mut bytes)?;
    if bytes.len() as u64 == range.length {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
