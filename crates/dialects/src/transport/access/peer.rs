//! The peer of a TCP connection.

use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::process::getuid;

use super::{process, sockets};

/// The peer of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A process of this user or of root, who has access to everything anyway.
    SameUser,
    /// A process of another user of this machine.
    OtherUser,
    /// A descendant of this process: a command of the agent.
    OwnCommand,
    /// A process on another machine.
    OtherMachine,
    /// A local process that has closed the connection, or that the kernel does not show.
    Unknown,
}

/// The local and the remote address of a connection.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Ends {
    pub(in super::super) local: SocketAddr,
    remote: SocketAddr,
}

/// A peer, and the inode of its socket if it is on this machine.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct LocatedPeer {
    pub(in super::super) peer: Peer,
    inode: Option<u32>,
}

impl Ends {
    /// The addresses of an accepted connection.
    pub(in super::super) fn of(local: SocketAddr, remote: SocketAddr) -> Self {
        let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        Self { local: canonical(local), remote: canonical(remote) }
    }

    /// Looks up the remote end in the kernel's table of sockets. A socket that its process closed has no
    /// inode, and its owner reads as root.
    pub(in super::super) fn look_up(self) -> LocatedPeer {
        let without_inode = |peer| LocatedPeer { peer, inode: None };
        match sockets::find(self.remote, self.local) {
            Ok(Some(socket)) if socket.inode != 0 => {
                let ours = socket.uid == 0 || socket.uid == getuid().as_raw();
                let peer = if ours { Peer::SameUser } else { Peer::OtherUser };
                LocatedPeer { peer, inode: Some(socket.inode) }
            }
            Ok(None) if !self.remote.ip().is_loopback() && self.remote.ip() != self.local.ip() => {
                without_inode(Peer::OtherMachine)
            }
            Ok(_) => without_inode(Peer::Unknown),
            Err(error) => {
                tracing::warn!(%error, "reading the owner of a connection failed");
                without_inode(Peer::Unknown)
            }
        }
    }
}

impl LocatedPeer {
    /// Checks whether a command of the agent holds the connection.
    pub(in super::super) fn or_command(self) -> Peer {
        match self.inode {
            Some(inode) if !process::is_held_by_others(inode) => Peer::OwnCommand,
            Some(_) | None => self.peer,
        }
    }
}

/// Tries whether this machine can identify the owners of connections. Fails with the reason if not.
pub fn can_identify_peers() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    match sockets::find(client.local_addr()?, client.peer_addr()?)? {
        Some(socket) if socket.inode != 0 && socket.uid == getuid().as_raw() => Ok(()),
        Some(_) | None => Err(std::io::Error::other("a connection is not in the kernel's tables")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_of_this_user_is_identified_until_it_is_closed() {
        can_identify_peers().unwrap();
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let port = listener.local_addr().unwrap().port();
            let to = if address == "[::1]:0" { "::1" } else { "127.0.0.1" };
            let client = TcpStream::connect((to, port)).unwrap();
            let (accepted, remote) = listener.accept().unwrap();
            let ends = Ends::of(accepted.local_addr().unwrap(), remote);
            assert_eq!(ends.look_up().peer, Peer::SameUser, "{address}");
            assert_eq!(ends.look_up().or_command(), Peer::SameUser, "{address}");
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(ends.look_up().peer, Peer::SameUser, "half of the connection is still open");
            drop(client);
            assert_eq!(ends.look_up().peer, Peer::Unknown, "{address}");
        }
    }

    #[test]
    fn a_remote_peer_that_is_in_no_table_is_on_another_machine() {
        let ends = |remote: &str| {
            Ends::of("192.0.2.1:80".parse().unwrap(), remote.parse().unwrap()).look_up().peer
        };
        assert_eq!(ends("192.0.2.2:5000"), Peer::OtherMachine);
        assert_eq!(ends("127.0.0.1:1"), Peer::Unknown);
        assert_eq!(ends("192.0.2.1:5000"), Peer::Unknown, "the address is one of this machine");
    }
}
