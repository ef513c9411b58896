//! A name in a directory beneath the root, and the operations on it.
//!
//! The directory is held open, so later changes of its path do not matter, and the name is never followed: a
//! link in its place is replaced or refused, not written through. A link to any target can be created, because
//! following it is stopped where it leads out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, FileContent};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, fstat, mkdirat, openat, readlinkat,
    renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::restore::{NewContent, NewFile};
use super::{PathError, explain, open_root, real_of, relative, resolve_from};

/// The largest file that is changed.
pub(crate) const FILE_BYTES_LIMIT: u64 = 16 * 1024 * 1024;

const OPEN_DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// The start and the end of the names of temporary files, which are renamed once they are written.
const TEMPORARY: &str = ".quintet-";
const TEMPORARY_END: &str = ".tmp";

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileData {
    #[serde(with = "base64_text")]
    pub(crate) bytes: Vec<u8>,
    /// The permissions; none for a new file that gets the usual ones.
    pub(crate) mode: Option<u32>,
    /// The bytes of a link are the path that it leads to.
    pub(crate) shape: FileKind,
}

impl FileData {
    /// What a regular file holds.
    pub(crate) fn file(bytes: Vec<u8>, mode: Option<u32>) -> Self {
        Self { bytes, mode, shape: FileKind::File }
    }
}

impl From<FileData> for FileContent {
    fn from(FileData { bytes, mode, shape }: FileData) -> Self {
        Self { size: bytes.len() as u64, body: Some(BlobBody::Bytes(bytes)), mode, shape }
    }
}

/// Bytes as text, which JSON can hold.
mod base64_text {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        BASE64_STANDARD.decode(String::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// A directory, by its device and number, and a name in it.
pub(crate) type PathIdentity = (u64, u64, OsString);

/// How an existing file is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Something of this shape is replaced.
    Replace(FileKind),
    Refuse,
}

/// Where a file is or will be.
#[derive(Debug)]
pub(crate) struct ConfinedPath {
    directory: OwnedFd,
    name: OsString,
    /// As it was given, for messages.
    path: PathBuf,
}

/// Reads a file that may be changed; `None` if it does not exist but could be created.
pub(crate) fn read(root: &Path, path: &Path) -> Result<Option<FileData>, PathError> {
    let place = match ConfinedPath::find(root, path) {
        // Nothing leads back out of a directory that is not there.
        Err(PathError::Missing(_))
            if !path.components().any(|part| part == Component::ParentDir) =>
        {
            return Ok(None);
        }
        other => other?,
    };
    match place.read() {
        Err(PathError::Missing(_)) => Ok(None),
        other => other.map(Some),
    }
}

impl ConfinedPath {
    /// A path whose directory exists.
    pub(crate) fn find(root: &Path, path: &Path) -> Result<Self, PathError> {
        let (parent, name) = split(root, path)?;
        let directory =
            open_root(root).and_then(|root| resolve_from(&root, &parent, OPEN_DIRECTORY));
        let directory = directory.map_err(|errno| explain(errno, path))?;
        Ok(Self { directory, name, path: path.to_owned() })
    }

    /// A place whose directory is made if it is not there.
    pub(crate) fn make(root: &Path, path: &Path) -> Result<Self, PathError> {
        let (parent, name) = split(root, path)?;
        let directory = open_root(root).and_then(|root| make_directories(&root, &parent));
        let directory = directory.map_err(|errno| explain(errno, path))?;
        Ok(Self { directory, name, path: path.to_owned() })
    }

    /// The device and inode of the directory, and the name: the same for every path that leads to this file.
    pub(crate) fn identity(&self) -> Result<PathIdentity, PathError> {
        let found = fstat(&self.directory).map_err(|errno| self.explain(errno))?;
        Ok((found.st_dev, found.st_ino, self.name.clone()))
    }

    /// Where this place really is, as seen from the real root.
    pub(crate) fn real(&self, root: &Path) -> Result<PathBuf, PathError> {
        Ok(real_of(&self.directory, root, &self.path)?.join(&self.name))
    }

    /// What is in the file here.
    pub(crate) fn read(&self) -> Result<FileData, PathError> {
        let file = self.open()?;
        let other = |source| PathError::Other { path: self.path.clone(), source };
        let metadata = file.metadata().map_err(other)?;
        if metadata.len() > FILE_BYTES_LIMIT {
            return Err(PathError::Large(self.path.clone(), metadata.len()));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_LIMIT).read_to_end(&mut bytes).map_err(other)?;
        let mode = std::os::unix::fs::MetadataExt::mode(&metadata) & 0o7777;
        Ok(FileData::file(bytes, Some(mode)))
    }

    /// Opens the file here.
    pub(crate) fn open(&self) -> Result<File, PathError> {
        self.check(FileKind::File)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&self.directory, &self.name, flags, Mode::empty());
        Ok(File::from(opened.map_err(|errno| self.explain(errno))?))
    }

    /// Where the link here leads.
    pub(crate) fn target(&self) -> Result<Vec<u8>, PathError> {
        let target = readlinkat(&self.directory, &self.name, Vec::new());
        Ok(target.map_err(|errno| self.explain(errno))?.into_bytes())
    }

    /// What is here.
    pub(crate) fn stat(&self) -> Result<Stat, PathError> {
        let found = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        found.map_err(|errno| self.explain(errno))
    }

    /// Puts a file here, whole or not at all.
    pub(crate) fn write(&self, content: &FileData, existing: Existing) -> Result<(), PathError> {
        let FileData { bytes, mode, shape } = content;
        self.put(
            &NewFile { filling: NewContent::Bytes(bytes), mode: *mode, shape: *shape },
            existing,
        )
    }

    /// Puts a file or a link here, whole or not at all.
    pub(super) fn put(&self, load: &NewFile<'_>, existing: Existing) -> Result<(), PathError> {
        let there = match existing {
            Existing::Replace(shape) => shape,
            Existing::Refuse => FileKind::File,
        };
        match (self.check(there), existing) {
            (Ok(()), Existing::Refuse) => return Err(PathError::Exists(self.path.clone())),
            (Ok(()) | Err(PathError::Missing(_)), _) => (),
            (Err(error), _) => return Err(error),
        }
        let (temporary, file) = self.temporary(load)?;
        let filled = file
            .map_or(Ok(()), |file| load.fill(file))
            .map_err(|source| PathError::Other { path: self.path.clone(), source })
            .and_then(|()| self.rename(&temporary, existing));
        if filled.is_err() {
            let _gone = unlinkat(&self.directory, &temporary, AtFlags::empty());
        }
        filled
    }

    /// Takes what is here away, if it has this shape.
    pub(crate) fn remove(&self, shape: FileKind) -> Result<(), PathError> {
        self.check(shape)?;
        let flags = if shape == FileKind::Folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let removed = unlinkat(&self.directory, &self.name, flags);
        removed.map_err(|errno| self.explain(errno))
    }

    /// Whether there is something of this shape here.
    fn check(&self, shape: FileKind) -> Result<(), PathError> {
        match shape_of(&self.stat()?) {
            found if found == shape => Ok(()),
            FileKind::File => Err(PathError::Exists(self.path.clone())),
            FileKind::Link => Err(PathError::Link(self.path.clone())),
            FileKind::Folder => Err(PathError::Directory(self.path.clone())),
            FileKind::Pipe | FileKind::Socket | FileKind::Other => {
                Err(PathError::Special(self.path.clone()))
            }
        }
    }

    /// The original path.
    pub(crate) fn given(&self) -> &Path {
        &self.path
    }

    /// The directory, and the name in it.
    pub(super) fn parts(&self) -> (&OwnedFd, &OsStr) {
        (&self.directory, &self.name)
    }

    /// Creates a temporary file, or a link, next to the final name.
    fn temporary(&self, load: &NewFile<'_>) -> Result<(OsString, Option<File>), PathError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let id = std::process::id();
            let name = OsString::from(format!("{TEMPORARY}{id}-{number}{TEMPORARY_END}"));
            let made = match (load.shape, load.filling) {
                (FileKind::Link, NewContent::Bytes(target)) => {
                    symlinkat(OsStr::from_bytes(target), &self.directory, &name).map(|()| None)
                }
                _ => openat(&self.directory, &name, flags, Mode::from_raw_mode(0o666))
                    .map(|file| Some(File::from(file))),
            };
            match made {
                Ok(file) => return Ok((name, file)),
                Err(Errno::EXIST) => (),
                Err(errno) => return Err(self.explain(errno)),
            }
        }
    }

    fn rename(&self, from: &OsStr, existing: Existing) -> Result<(), PathError> {
        let at = &self.directory;
        let renamed = match existing {
            Existing::Replace(_) => renameat(at, from, at, &self.name),
            Existing::Refuse => {
                match renameat_with(at, from, at, &self.name, RenameFlags::NOREPLACE) {
                    // Not every file system supports this; existence was checked a moment ago.
                    Err(Errno::INVAL | Errno::NOSYS) => renameat(at, from, at, &self.name),
                    other => other,
                }
            }
        };
        renamed.map_err(|errno| self.explain(errno))
    }

    pub(super) fn explain(&self, errno: Errno) -> PathError {
        match errno {
            Errno::EXIST => PathError::Exists(self.path.clone()),
            Errno::LOOP => PathError::Link(self.path.clone()),
            other => explain(other, &self.path),
        }
    }
}

/// Whether a name is that of a file which is just being written.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    name.starts_with(TEMPORARY.as_bytes()) && name.ends_with(TEMPORARY_END.as_bytes())
}

/// The kind of a file, from its `stat`.
pub(crate) fn shape_of(stat: &Stat) -> FileKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Symlink => FileKind::Link,
        FileType::Directory => FileKind::Folder,
        FileType::Fifo => FileKind::Pipe,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => FileKind::Other,
    }
}

/// The directory and the name in it.
fn split(root: &Path, path: &Path) -> Result<(PathBuf, OsString), PathError> {
    let relative = relative(root, path)?;
    let Some(name) = relative.file_name() else {
        let up = relative.components().any(|part| part == Component::ParentDir);
        let path = path.to_owned();
        return Err(if up { PathError::Outside(path) } else { PathError::Directory(path) });
    };
    let parent = relative.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((parent.unwrap_or(Path::new(".")).to_owned(), name.to_owned()))
}

/// Opens a directory and makes what is missing of it.
///
/// Every step is resolved from the root, so that links inside it may be used but not left by.
fn make_directories(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    match resolve_from(root, path, OPEN_DIRECTORY) {
        Err(Errno::NOENT) => (),
        other => return other,
    }
    let parts: Vec<_> = path.components().filter(|part| *part != Component::CurDir).collect();
    if parts.contains(&Component::ParentDir) {
        return Err(Errno::NOENT);
    }
    let (mut directory, mut prefix) =
        (resolve_from(root, ".".as_ref(), OPEN_DIRECTORY)?, PathBuf::new());
    for part in parts {
        prefix.push(part);
        directory = match resolve_from(root, &prefix, OPEN_DIRECTORY) {
            Err(Errno::NOENT) => {
                match mkdirat(&directory, part.as_os_str(), Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => (),
                    Err(errno) => return Err(errno),
                }
                resolve_from(root, &prefix, OPEN_DIRECTORY)?
            }
            other => other?,
        };
    }
    Ok(directory)
}
