//! Unix sockets: access checks, and one message per line.

mod address;
mod lines;
mod place;
mod sweep;

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Uid, getuid};
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};

pub use address::connect;
pub use lines::{Line, Lines};

use super::access::is_command;

/// A socket that only this user can connect to; its file goes away with it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, so that another daemon's file is never removed.
    file: (u64, u64),
}

/// The process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerProcess {
    /// The process id, where that is known.
    pub pid: Option<i32>,
}

impl Socket {
    /// Listens at a path, which may be left over from a daemon that is gone, but not in use. What
    /// others left that are named after their process goes, too.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let listener = place::bind(path)?;
        listener.set_nonblocking(true)?;
        sweep::sweep(path);
        let file = place::identity(path)?;
        Ok(Self { listener: UnixListener::from_std(listener)?, path: path.into(), file })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection of this user; those of other users are closed. Fails if the socket does.
    pub async fn accept(&self) -> io::Result<(UnixStream, PeerProcess)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if is_command(peer.pid()) => {
                    tracing::warn!(pid = peer.pid(), "a connection of a command was refused");
                }
                Ok(peer) if ours(&peer) => return Ok((stream, PeerProcess { pid: peer.pid() })),
                Ok(peer) => {
                    tracing::warn!(uid = peer.uid(), "a connection of another user was refused");
                }
                Err(error) => {
                    tracing::warn!(%error, "could not read the uid of a peer, connection refused")
                }
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if place::identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl PeerProcess {
    /// The directory that the process at the other end is in.
    pub fn directory(self) -> Option<PathBuf> {
        let pid = Pid::from_raw(self.pid?)?;
        std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).ok()
    }
}

/// True for this user. File permissions demand the same, but some file systems ignore them.
fn ours(peer: &UCred) -> bool {
    Uid::from_raw(peer.uid()) == getuid()
}

#[cfg(test)]
mod tests;
