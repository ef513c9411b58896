//! Socket addresses for paths that are longer than the system supports.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The longest path of an address: 108 bytes with the terminating zero.
const ADDRESS_LIMIT: usize = 107;

/// A path that the system accepts as a socket address, valid while this value exists.
#[derive(Debug)]
pub(super) struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Address {
    /// The path itself or, if it is too long, a path through the open folder.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= ADDRESS_LIMIT {
            return Ok(Self { path: path.into(), _folder: None });
        }
        let folder = File::open(path.parent().unwrap_or(Path::new("/")))?;
        let name = path.file_name().unwrap_or(OsStr::new(""));
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self { path, _folder: Some(folder) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Connects to a socket, however long its path is. Fails if no process listens there.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(Address::of(path)?.path())
}
