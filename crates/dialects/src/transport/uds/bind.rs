//! Binds a socket at a path: private from the start, and never over another daemon's socket. Also removes
//! the sockets of daemons that were killed.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::process::getuid;

use super::address::{Address, connect};

/// Binds a socket at `path`. Fails if another process listens there.
///
/// The socket is created in a private folder and moved from there, so that no other user can ever connect
/// to it.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    if !path.is_absolute() {
        return Err(io::Error::other("the path of a socket must be absolute"));
    }
    let folder = private_folder(path)?;
    let temporary = folder.join("s");
    let bound =
        Address::of(&temporary).and_then(|at| UnixListener::bind(at.path())).and_then(|listener| {
            fs::set_permissions(&temporary, Permissions::from_mode(0o600))?;
            move_into_place(&temporary, path)?;
            Ok(listener)
        });
    let _ = fs::remove_file(&temporary);
    let _ = fs::remove_dir(&folder);
    bound
}

/// The device and inode of a file.
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
    Err(io::Error::other("no free name for a temporary folder"))
}

fn move_into_place(temporary: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => {
            check_stale(path)?;
            fs::rename(temporary, path)
        }
        Err(error) => Err(error.into()),
    }
}

/// Fails unless a path is a socket on which no process listens.
fn check_stale(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the path exists and is not a socket",
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

/// Removes sockets in the same folder that are named after processes that have ended, because nothing else would
/// remove them. Files that cannot be checked stay.
pub(super) fn remove_left_sockets(path: &Path) {
    let own = std::process::id().to_string();
    let names = path.file_name().and_then(|name| name.to_str()?.split_once(&own));
    let (Some((before, after)), Some(folder)) = (names, path.parent()) else { return };
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(before)?.strip_suffix(after))
            .filter(|process| process.bytes().all(|byte| byte.is_ascii_digit()));
        if process.is_some_and(|process| process != own && is_left(&entry.path(), process)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// True if a socket belongs to this user, its process has ended and no process listens on it.
fn is_left(path: &Path, process: &str) -> bool {
    let ours = fs::symlink_metadata(path).is_ok_and(|file| file.uid() == getuid().as_raw());
    ours && !Path::new("/proc").join(process).exists() && check_stale(path).is_ok()
}
