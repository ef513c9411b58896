//! Where a path really leads that a call names, as the kernel would go.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use quintet_seccomp::Notice;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::named::At;

/// The longest path there is.
const LONGEST: usize = 4096;
/// Memory can be read to the end of a page; the next one may not be there.
const PAGE: u64 = 4096;
/// How many links the kernel follows.
const LINKS: usize = 40;

/// The real path; nothing if there is no way to it, so that the call will fail by itself.
pub(super) fn real(notice: &Notice, at: &At) -> io::Result<Option<PathBuf>> {
    let start = match at.folder {
        libc::AT_FDCWD => format!("/proc/{}/cwd", notice.thread),
        number => format!("/proc/{}/fd/{number}", notice.thread),
    };
    let path = at.text.map_or(Ok(PathBuf::new()), |address| text(notice, address))?;
    if path.as_os_str().is_empty() {
        return Ok(fs::read_link(start).ok().filter(|path| path.is_absolute()));
    }
    Ok(resolve(notice.thread, start.into(), path, at.follow))
}

fn resolve(thread: u32, mut start: PathBuf, path: PathBuf, follow: bool) -> Option<PathBuf> {
    let mut path = theirs(thread, path);
    for _ in 0..=LINKS {
        let whole = start.join(&path);
        let Some(name) = whole.file_name() else { return directory(&whole) };
        let parent = directory(whole.parent()?)?;
        let found = parent.join(name);
        if !follow {
            return Some(found);
        }
        match fs::read_link(&found) {
            Ok(target) => (start, path) = (parent, theirs(thread, target)),
            Err(_) => return Some(found),
        }
    }
    None
}

/// The path of a directory, without links.
fn directory(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, path, flags, Mode::empty()).ok()?;
    fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).ok()
}

/// What is one's own there is not one's own here.
fn theirs(thread: u32, path: PathBuf) -> PathBuf {
    for (own, there) in [("/proc/self", ""), ("/proc/thread-self", ""), ("/dev/fd", "fd")] {
        if let Ok(rest) = path.strip_prefix(own) {
            return Path::new("/proc").join(thread.to_string()).join(there).join(rest);
        }
    }
    path
}

/// Reads a path from the memory of the process that makes the call.
fn text(notice: &Notice, address: u64) -> io::Result<PathBuf> {
    let (mut bytes, mut address) = (Vec::new(), address);
    while bytes.len() < LONGEST {
        let mut piece = [0; PAGE as usize];
        let room = usize::try_from(PAGE - address % PAGE).unwrap_or_default();
        let read = notice.read(address, &mut piece[..room])?;
        let piece = &piece[..read];
        if let Some(end) = memchr::memchr(0, piece) {
            bytes.extend_from_slice(&piece[..end]);
            return Ok(OsString::from_vec(bytes).into());
        }
        bytes.extend_from_slice(piece);
        address += PAGE - address % PAGE;
    }
    Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
}
