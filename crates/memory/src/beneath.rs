//! Opens what is beneath a workspace. No link is followed on the way, not even one that stays inside:
//! what is written down as memory is where it says it is.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use quintet_kernel::memory::Error;
use rustix::fs::{
    CWD, FlockOperation, Mode, OFlags, ResolveFlags, flock, mkdirat, openat, openat2,
};
use rustix::io::Errno;

/// The largest file that is used.
pub(crate) const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// How often a path is tried again that was moved while it was being resolved.
const ATTEMPTS: usize = 8;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A workspace, held open.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

/// A folder that nobody else writes to as long as this is there.
#[derive(Debug)]
pub(crate) struct Locked(pub(crate) OwnedFd);

impl Root {
    pub(crate) fn open(root: &Path) -> Result<Self, Error> {
        let opened = openat(CWD, root, FOLDER | OFlags::CLOEXEC, Mode::empty());
        opened.map(Self).map_err(|errno| explain(errno, &root.to_string_lossy()))
    }

    /// A folder; nothing if it is not there.
    pub(crate) fn folder(&self, path: &str) -> Result<Option<OwnedFd>, Error> {
        there(self.resolve(path, FOLDER, Mode::empty()), path)
    }

    /// A folder, made if it is not there, that nobody else writes to meanwhile.
    pub(crate) fn locked(&self, path: &str) -> Result<Locked, Error> {
        match mkdirat(&self.0, path, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(explain(errno, path)),
        }
        let folder = self.folder(path)?.ok_or_else(|| Error::NotFound(path.to_owned()))?;
        loop {
            match flock(&folder, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                locked => return locked.map(|()| Locked(folder)).map_err(|e| explain(e, path)),
            }
        }
    }

    /// What a file holds; nothing if it is not there.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        // A pipe without a writer must not hold up the call, nor a terminal become ours.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        match there(self.resolve(path, flags, Mode::empty()), path)? {
            Some(file) => content(&File::from(file), path).map(Some),
            None => Ok(None),
        }
    }

    /// A file to add to, made if it is not there.
    pub(crate) fn appendable(&self, path: &str) -> Result<File, Error> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
        let opened = self.resolve(path, flags | OFlags::NOCTTY, Mode::from_raw_mode(0o666));
        opened.map(File::from).map_err(|errno| explain(errno, path))
    }

    /// A file to repair; nothing if it is not there.
    pub(crate) fn writable(&self, path: &str) -> Result<Option<File>, Error> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(there(self.resolve(path, flags, Mode::empty()), path)?.map(File::from))
    }

    fn resolve(&self, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let inside =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let mut opened = Err(Errno::AGAIN);
        for _ in 0..ATTEMPTS {
            opened = openat2(&self.0, path, flags | OFlags::CLOEXEC, mode, inside);
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        opened
    }
}

/// All of a regular file that is not too large.
pub(crate) fn content(mut file: &File, path: &str) -> Result<Vec<u8>, Error> {
    let metadata = file.metadata().map_err(|error| storage(path, &error))?;
    if !metadata.is_file() {
        return Err(Error::NotFound(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.by_ref()
        .take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| storage(path, &error))?;
    if bytes.len() as u64 > MOST_BYTES {
        let bytes = metadata.len().max(MOST_BYTES + 1);
        return Err(Error::TooLarge { what: path.to_owned(), bytes, most: MOST_BYTES });
    }
    Ok(bytes)
}

pub(crate) fn storage(path: &str, error: &io::Error) -> Error {
    Error::Storage(format!("{path}: {error}"))
}

fn there(opened: Result<OwnedFd, Errno>, path: &str) -> Result<Option<OwnedFd>, Error> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(explain(errno, path)),
    }
}

pub(crate) fn explain(errno: Errno, path: &str) -> Error {
    match errno {
        Errno::XDEV | Errno::LOOP => Error::Outside(path.to_owned()),
        Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::NXIO => {
            Error::NotFound(path.to_owned())
        }
        other => storage(path, &other.into()),
    }
}
