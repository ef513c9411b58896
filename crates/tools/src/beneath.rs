//! Opens files beneath a directory. The kernel refuses whatever leads out of it, so no string is
//! ever compared to find out, and nobody can swap a directory for a link in between.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// How often a path is tried again that was moved while it was being resolved.
const ATTEMPTS: usize = 8;

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("path is outside the workspace: {}", .0.display())]
    Outside(PathBuf),
    #[error("no such file: {}", .0.display())]
    Missing(PathBuf),
    #[error("path is a directory, not a file: {}", .0.display())]
    Directory(PathBuf),
    #[error("not a regular file: {}", .0.display())]
    Special(PathBuf),
    #[error("this system cannot open files safely: openat2 is missing (Linux 5.6 or newer has it)")]
    Unsupported,
    #[error("{path}: {source}", path = .path.display())]
    Other { path: PathBuf, source: io::Error },
}

/// Opens a regular file for reading, by a path relative to `root` or an absolute one inside it.
pub(crate) fn open(root: &Path, path: &Path) -> Result<File, Error> {
    let relative = relative(root, path)?;
    let file = resolve(root, &relative).map_err(|errno| explain(errno, path))?;
    let kind = file
        .metadata()
        .map_err(|source| Error::Other { path: path.to_owned(), source })?
        .file_type();
    if kind.is_dir() {
        return Err(Error::Directory(path.to_owned()));
    }
    if !kind.is_file() {
        return Err(Error::Special(path.to_owned()));
    }
    Ok(file)
}

/// The path as seen from the root. This only translates; whether it stays inside is not its care.
fn relative(root: &Path, path: &Path) -> Result<PathBuf, Error> {
    if path.is_relative() {
        return Ok(path.to_owned());
    }
    // The root may have been given by a name that goes through a link.
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let inside = path.strip_prefix(root).or_else(|_| path.strip_prefix(real));
    let inside = inside.map_err(|_| Error::Outside(path.to_owned()))?;
    Ok(if inside.as_os_str().is_empty() { PathBuf::from(".") } else { inside.to_owned() })
}

fn resolve(root: &Path, path: &Path) -> Result<File, Errno> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, root, directory, Mode::empty())?;
    // A pipe without a writer must not hold up the call, nor a terminal become ours.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS {
        opened = openat2(&root, path, flags, Mode::empty(), inside);
        if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    opened.map(File::from)
}

fn explain(errno: Errno, path: &Path) -> Error {
    let path = path.to_owned();
    match errno {
        Errno::XDEV => Error::Outside(path),
        Errno::NOENT | Errno::NOTDIR => Error::Missing(path),
        Errno::NOSYS => Error::Unsupported,
        Errno::NXIO => Error::Special(path),
        other => Error::Other { path, source: other.into() },
    }
}
