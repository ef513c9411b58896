//! Binds a socket at a path: private from the start, and never over another daemon's socket.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::address::{Address, connect};

/// Binds a socket at `path`.
///
/// The socket is made in a folder that other users cannot enter and moved from there, so that there is no moment
/// in which another user could connect to it.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    if !path.is_absolute() {
        return Err(io::Error::other("the path of a socket must be absolute"));
    }
    let folder = private_folder(path)?;
    let draft = folder.join("s");
    let bound =
        Address::of(&draft).and_then(|at| UnixListener::bind(at.path())).and_then(|listener| {
            fs::set_permissions(&draft, Permissions::from_mode(0o600))?;
            move_into_place(&draft, path)?;
            Ok(listener)
        });
    let _ = fs::remove_file(&draft);
    let _ = fs::remove_dir(&folder);
    bound
}

/// Which file a path leads to.
pub(super) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

fn private_folder(path: &Path) -> io::Result<PathBuf> {
    let parent = path.parent().ok_or_else(|| io::Error::other("the path is a directory"))?;
    for number in 0..100 {
        let folder = parent.join(format!(".q{:x}{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there is no free name beside it"))
}

fn move_into_place(draft: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, draft, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => {
            stale(path)?;
            fs::rename(draft, path)
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks that a path is a socket on which no process answers. Fails otherwise.
pub(super) fn stale(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is something else, which is not a socket",
        ));
    }
    match connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, "another program listens on this socket"))
        }
        Err(error) => Err(error),
    }
}
