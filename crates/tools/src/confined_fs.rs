//! Opens files beneath a directory. The kernel refuses paths that lead out of it, so no strings are compared, and
//! a directory cannot be swapped for a link in between.
//!
//! Writes go through a [`ConfinedPath`]: a directory that was opened this way, and a name in it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

mod path;
mod restore;

pub(crate) use path::{
    ConfinedPath, Existing, FileData, PathIdentity, is_temporary, read, shape_of,
};
pub(crate) use restore::read_range;

/// How often a path is tried again that was moved while it was being resolved.
const ATTEMPTS_LIMIT: usize = 8;

/// A file or directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error("path is outside the workspace: {}", .0.display())]
    Outside(PathBuf),
    #[error("no such file: {}", .0.display())]
    Missing(PathBuf),
    #[error("path is a directory, not a file: {}", .0.display())]
    Directory(PathBuf),
    #[error("not a regular file: {}", .0.display())]
    Special(PathBuf),
    #[error("no such directory: {}", .0.display())]
    NoDirectory(PathBuf),
    #[error("path is a symbolic link; name the file it leads to: {}", .0.display())]
    Link(PathBuf),
    #[error("file exists already: {}", .0.display())]
    Exists(PathBuf),
    #[error("file is too large to be changed ({1} bytes, at most {most}): {path}",
            most = path::FILE_BYTES_LIMIT, path = .0.display())]
    Large(PathBuf, u64),
    #[error("this system cannot open files safely: openat2 is missing (Linux 5.6 or newer has it)")]
    Unsupported,
    #[error("{path}: {source}", path = .path.display())]
    Other { path: PathBuf, source: io::Error },
}

/// Opens a regular file for reading, by a path relative to `root` or an absolute one inside it.
pub(crate) fn open(root: &Path, path: &Path) -> Result<File, PathError> {
    let relative = relative(root, path)?;
    let root = open_root(root).map_err(|errno| explain(errno, path))?;
    open_from(&root, &relative, path)
}

/// A directory that is held open, to read many files beneath it.
#[derive(Debug)]
pub(crate) struct ConfinedRoot(OwnedFd);

impl ConfinedRoot {
    /// Opens the directory.
    pub(crate) fn open(root: &Path) -> Result<Self, PathError> {
        open_root(root).map(Self).map_err(|errno| match explain(errno, root) {
            PathError::Missing(path) => PathError::NoDirectory(path),
            other => other,
        })
    }

    /// Opens a regular file for reading, by a relative path.
    pub(crate) fn file(&self, path: &Path) -> Result<File, PathError> {
        open_from(&self.0, path, path)
    }
}

/// `path` is what the file goes by in messages.
fn open_from(root: &OwnedFd, relative: &Path, path: &Path) -> Result<File, PathError> {
    // A pipe without a writer must not block, and a terminal must not become the controlling one.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = resolve_from(root, relative, flags).map_err(|errno| explain(errno, path))?;
    let file = File::from(file);
    let kind = file
        .metadata()
        .map_err(|source| PathError::Other { path: path.to_owned(), source })?
        .file_type();
    if kind.is_dir() {
        return Err(PathError::Directory(path.to_owned()));
    }
    if !kind.is_file() {
        return Err(PathError::Special(path.to_owned()));
    }
    Ok(file)
}

/// Opens a directory for listing.
pub(crate) fn directory(root: &Path, path: &Path) -> Result<OwnedFd, PathError> {
    let relative = relative(root, path)?;
    resolve(root, &relative, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|errno| {
        match explain(errno, path) {
            PathError::Missing(path) => PathError::NoDirectory(path),
            other => other,
        }
    })
}

/// Where a directory really is, as seen from the real root; for walks, which go by name.
pub(crate) fn real_directory(root: &Path, path: &Path) -> Result<PathBuf, PathError> {
    real_of(&directory(root, path)?, root, path)
}

/// Where something really is, as seen from the real root. What is not there yet would be beneath
/// what is.
pub(crate) fn real(root: &Path, path: &Path) -> Result<PathBuf, PathError> {
    let relative = relative(root, path)?;
    for there in relative.ancestors() {
        let looked_at = if there.as_os_str().is_empty() { Path::new(".") } else { there };
        let missing = relative.strip_prefix(there).unwrap_or(&relative);
        match resolve(root, looked_at, OFlags::PATH) {
            // Nothing leads back out of a directory that is not there.
            Err(Errno::NOENT) if missing.components().all(|part| part != Component::ParentDir) => {}
            Err(errno) => return Err(explain(errno, path)),
            Ok(opened) => {
                let real = real_of(&opened, root, path)?;
                // To join nothing would add a slash.
                let whole = missing.as_os_str().is_empty();
                return Ok(if whole { real } else { real.join(missing) });
            }
        }
    }
    Err(PathError::Missing(path.to_owned()))
}

fn real_of(opened: &OwnedFd, root: &Path, path: &Path) -> Result<PathBuf, PathError> {
    let other = |source| PathError::Other { path: path.to_owned(), source };
    let real = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    let root = root.canonicalize().map_err(other)?;
    let real = real.map_err(other)?;
    real.strip_prefix(root).map(Path::to_owned).map_err(|_| PathError::Outside(path.to_owned()))
}

/// The path as seen from the root. This only translates; whether it stays inside is not its care.
fn relative(root: &Path, path: &Path) -> Result<PathBuf, PathError> {
    if path.is_relative() {
        return Ok(path.to_owned());
    }
    // The root may have been given by a name that goes through a link.
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let inside = path.strip_prefix(root).or_else(|_| path.strip_prefix(real));
    let inside = inside.map_err(|_| PathError::Outside(path.to_owned()))?;
    Ok(if inside.as_os_str().is_empty() { PathBuf::from(".") } else { inside.to_owned() })
}

fn resolve(root: &Path, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    resolve_from(&open_root(root)?, path, flags)
}

fn open_root(root: &Path) -> Result<OwnedFd, Errno> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, root, directory, Mode::empty())
}

fn resolve_from(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS_LIMIT {
        opened = openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), inside);
        if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    opened
}

fn explain(errno: Errno, path: &Path) -> PathError {
    let path = path.to_owned();
    match errno {
        Errno::XDEV => PathError::Outside(path),
        Errno::NOENT | Errno::NOTDIR => PathError::Missing(path),
        Errno::NOSYS => PathError::Unsupported,
        Errno::NXIO => PathError::Special(path),
        other => PathError::Other { path, source: other.into() },
    }
}
