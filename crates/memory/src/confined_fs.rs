//! Opens files and folders below a workspace. No symbolic link is followed on the way, not even one that
//! stays inside, so a path of memory always names the file itself.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use quintet_kernel::memory::MemoryError;
use rustix::fs::{
    CWD, FlockOperation, Mode, OFlags, ResolveFlags, flock, mkdirat, openat, openat2,
};
use rustix::io::Errno;

/// Maximum length of a file that is read, in bytes.
pub(crate) const FILE_BYTES_LIMIT: u64 = 8 * 1024 * 1024;

/// Maximum attempts to resolve a path that is moved meanwhile.
const RESOLVE_TRIES_LIMIT: usize = 8;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A workspace, held open.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

/// A folder with an exclusive lock, which is released when the value is dropped.
#[derive(Debug)]
pub(crate) struct LockedFolder(pub(crate) OwnedFd);

impl Root {
    pub(crate) fn open(root: &Path) -> Result<Self, MemoryError> {
        let opened = openat(CWD, root, FOLDER | OFlags::CLOEXEC, Mode::empty());
        opened.map(Self).map_err(|errno| open_error(errno, &root.to_string_lossy()))
    }

    /// Opens a folder; `None` if it does not exist.
    pub(crate) fn folder(&self, path: &str) -> Result<Option<OwnedFd>, MemoryError> {
        if_present(self.resolve(path, FOLDER, Mode::empty()), path)
    }

    /// Opens and locks a folder, which is created if it does not exist.
    pub(crate) fn locked(&self, path: &str) -> Result<LockedFolder, MemoryError> {
        match mkdirat(&self.0, path, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(open_error(errno, path)),
        }
        let folder = self.folder(path)?.ok_or_else(|| MemoryError::NotFound(path.to_owned()))?;
        loop {
            match flock(&folder, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                locked => {
                    return locked.map(|()| LockedFolder(folder)).map_err(|e| open_error(e, path));
                }
            }
        }
    }

    /// Reads a file; `None` if it does not exist.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, MemoryError> {
        // A pipe without a writer must not block, and a terminal must not become the controlling
        // one.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        match if_present(self.resolve(path, flags, Mode::empty()), path)? {
            Some(file) => content(&File::from(file), path).map(Some),
            None => Ok(None),
        }
    }

    /// Opens a file to append to, which is created if it does not exist.
    pub(crate) fn appendable(&self, path: &str) -> Result<File, MemoryError> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
        let opened = self.resolve(path, flags | OFlags::NOCTTY, Mode::from_raw_mode(0o666));
        opened.map(File::from).map_err(|errno| open_error(errno, path))
    }

    /// Opens a file to repair; `None` if it does not exist.
    pub(crate) fn writable(&self, path: &str) -> Result<Option<File>, MemoryError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(if_present(self.resolve(path, flags, Mode::empty()), path)?.map(File::from))
    }

    fn resolve(&self, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let inside =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let mut opened = Err(Errno::AGAIN);
        for _ in 0..RESOLVE_TRIES_LIMIT {
            opened = openat2(&self.0, path, flags | OFlags::CLOEXEC, mode, inside);
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        opened
    }
}

/// Reads all of a regular file. Fails if it is larger than [`FILE_BYTES_LIMIT`].
pub(crate) fn content(mut file: &File, path: &str) -> Result<Vec<u8>, MemoryError> {
    let metadata = file.metadata().map_err(|error| storage_error(path, &error))?;
    if !metadata.is_file() {
        return Err(MemoryError::NotFound(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.by_ref()
        .take(FILE_BYTES_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| storage_error(path, &error))?;
    if bytes.len() as u64 > FILE_BYTES_LIMIT {
        let bytes = metadata.len().max(FILE_BYTES_LIMIT + 1);
        return Err(MemoryError::TooLarge { what: path.to_owned(), bytes, most: FILE_BYTES_LIMIT });
    }
    Ok(bytes)
}

pub(crate) fn storage_error(path: &str, error: &io::Error) -> MemoryError {
    MemoryError::Storage(format!("{path}: {error}"))
}

fn if_present(opened: Result<OwnedFd, Errno>, path: &str) -> Result<Option<OwnedFd>, MemoryError> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(open_error(errno, path)),
    }
}

pub(crate) fn open_error(errno: Errno, path: &str) -> MemoryError {
    match errno {
        Errno::XDEV | Errno::LOOP => MemoryError::Outside(path.to_owned()),
        Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => {
            MemoryError::NotFound(path.to_owned())
        }
        other => storage_error(path, &other.into()),
    }
}
