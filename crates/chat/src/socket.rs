//! Finds and opens the socket of a daemon.

use std::cmp::Reverse;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::net::UnixStream;

use crate::{Error, Settings};

/// Opens the socket that the settings name, or else the newest one that answers. Fails if none
/// does.
pub(crate) async fn open(settings: &Settings) -> Result<UnixStream, Error> {
    if let Some(socket) = &settings.socket {
        return connect(socket).await;
    }
    for socket in candidates(&settings.runtime) {
        if let Ok(stream) = connect(&socket).await {
            return Ok(stream);
        }
    }
    Err(Error::NoDaemon(settings.runtime.clone()))
}

async fn connect(socket: &Path) -> Result<UnixStream, Error> {
    let silent = |error| Error::Unreachable(socket.to_owned(), error);
    // Other users may be able to create a socket in the folder; only this user's are trusted.
    let owner = std::fs::metadata(socket).map_err(silent)?.uid();
    if owner != rustix::process::getuid().as_raw() {
        return Err(Error::OtherOwner(socket.to_owned()));
    }
    UnixStream::connect(socket).await.map_err(silent)
}

/// Sockets with a daemon's name, the newest first.
fn candidates(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut found: Vec<(SystemTime, PathBuf)> =
        entries.filter_map(|entry| candidate(&entry.ok()?.path()).ok().flatten()).collect();
    found.sort_by_key(|(made, _)| Reverse(*made));
    found.into_iter().map(|(_, path)| path).collect()
}

fn candidate(path: &Path) -> io::Result<Option<(SystemTime, PathBuf)>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with("openagent-terminal-") || !name.ends_with(".sock") {
        return Ok(None);
    }
    let about = std::fs::symlink_metadata(path)?;
    let socket = about.file_type().is_socket();
    Ok(socket.then_some((about.modified()?, path.to_owned())))
}

#[cfg(test)]
mod tests;
