//! Looks up the owner of a TCP socket in the kernel's table.
//!
//! `sock_diag(7)` looks up one socket, independent of the number of open ones. Without it, the whole table in
//! `/proc/net/tcp` is read.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// A socket of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    /// The owner.
    pub(super) uid: u32,
    /// The inode; 0 if no process has the socket open.
    pub(super) inode: u32,
}

/// Finds the local socket with these two addresses.
pub(super) fn find(own: SocketAddr, other: SocketAddr) -> io::Result<Option<Socket>> {
    query_kernel(own, other).or_else(|_| read_table(own, other))
}

/// `SOCK_DIAG_BY_FAMILY`, and the flag for requests.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
/// The type of an error message.
const ERROR: u16 = 2;
const LISTENS: u8 = 10;
const TCP: u8 = 6;
/// Offsets in the response: a header of 16 bytes, then `inet_diag_msg`.
const STATE: usize = 17;
const UID: usize = 80;
const INODE: usize = 84;

fn query_kernel(own: SocketAddr, other: SocketAddr) -> io::Result<Option<Socket>> {
    let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
    let kernel = socket_with(AddressFamily::NETLINK, kind, flags, Some(netlink::SOCK_DIAG))?;
    send(&kernel, &request(own, other), SendFlags::empty())?;
    let mut response = [0; 512];
    let (length, _) = recv(&kernel, &mut response, RecvFlags::empty())?;
    parse_response(&response[..length.min(response.len())])
}

fn parse_response(response: &[u8]) -> io::Result<Option<Socket>> {
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let word = |at: usize| {
        let bytes = response.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_ne_bytes).ok_or_else(short)
    };
    match word(4)? as u16 {
        BY_FAMILY if response.get(STATE) == Some(&LISTENS) => Ok(None),
        BY_FAMILY => Ok(Some(Socket { uid: word(UID)?, inode: word(INODE)? })),
        ERROR if word(16)?.wrapping_neg() == Errno::NOENT.raw_os_error() as u32 => Ok(None),
        ERROR => Err(io::Error::from_raw_os_error(word(16)?.wrapping_neg() as i32)),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// A header and `inet_diag_req_v2`.
fn request(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
    let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut bytes = Vec::with_capacity(72);
    bytes.extend(72_u32.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family.as_raw() as u8, TCP, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(own.port().to_be_bytes());
    bytes.extend(other.port().to_be_bytes());
    bytes.extend(address_bytes(own.ip()));
    bytes.extend(address_bytes(other.ip()));
    // Any interface, and no cookie.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
    }
}

fn read_table(own: SocketAddr, other: SocketAddr) -> io::Result<Option<Socket>> {
    // An IPv6 socket that uses IPv4 is listed with the IPv6 sockets.
    let table = fs::read_to_string("/proc/net/tcp")?;
    let table6 = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    Ok(row(&table, own, other).or_else(|| row(&table6, own, other)))
}

/// The row `0: LOCAL REMOTE STATE QUEUES TIMER RETRANSMIT UID TIMEOUT INODE …`.
fn row(table: &str, own: SocketAddr, other: SocketAddr) -> Option<Socket> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, _, _, _, _, uid, _, inode, ..] = fields[..] else { return None };
        let same = address(local)? == own && address(remote)? == other;
        same.then_some(Socket { uid: uid.parse().ok()?, inode: inode.parse().ok()? })
    })
}

/// Parses an address such as `0100007F:1F90`: words in native byte order, in hex.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = address.get(at..at + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip: IpAddr = match address.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let bytes = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_table_and_the_kernel_agree() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (own, other) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            let found = query_kernel(own, other).unwrap().unwrap();
            assert_eq!(read_table(own, other).unwrap(), Some(found));
            assert!(found.inode != 0 && found.uid == rustix::process::getuid().as_raw());
            // The listener itself is not a connection.
            let unconnected = SocketAddr::new(own.ip(), 1);
            assert_eq!(query_kernel(other, unconnected).unwrap(), None);
        }
    }
}
