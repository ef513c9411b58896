//! Unix sockets: access checks, and one message per line.

mod address;
mod bind;
mod lines;

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Uid, getuid};
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};

pub use address::connect;
pub use lines::{Line, Lines};

use super::access::is_command;

/// A socket that only this user can connect to; its file is removed when it is dropped.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, so that another daemon's file is never removed.
    file: (u64, u64),
}

/// The peer process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerProcess {
    /// The process id, if known.
    pub pid: Option<i32>,
}

impl Socket {
    /// Listens at a path. A socket of a daemon that has ended is replaced; fails if another process listens
    /// there. Sockets of other ended daemons in the same folder are removed.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let listener = bind::bind(path)?;
        listener.set_nonblocking(true)?;
        bind::remove_left_sockets(path);
        let file = bind::identity(path)?;
        Ok(Self { listener: UnixListener::from_std(listener)?, path: path.into(), file })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts the next connection of this user; those of other users and of commands are closed. Fails if
    /// accepting fails.
    pub async fn accept(&self) -> io::Result<(UnixStream, PeerProcess)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if is_command(peer.pid()) => {
                    tracing::warn!(
                        pid = peer.pid(),
                        "connection refused: the peer is a command of the agent"
                    );
                }
                Ok(peer) if is_same_user(&peer) => {
                    return Ok((stream, PeerProcess { pid: peer.pid() }));
                }
                Ok(peer) => {
                    tracing::warn!(
                        uid = peer.uid(),
                        "connection refused: the peer is another user"
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "connection refused: reading the peer's uid failed")
                }
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if bind::identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl PeerProcess {
    /// The working directory of the peer process.
    pub fn directory(self) -> Option<PathBuf> {
        let pid = Pid::from_raw(self.pid?)?;
        std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).ok()
    }
}

/// True for this user. File permissions ensure the same, but some file systems ignore them.
fn is_same_user(peer: &UCred) -> bool {
    Uid::from_raw(peer.uid()) == getuid()
}

#[cfg(test)]
mod tests;
