//! Brings up the loopback of a new network namespace, which is down at first.

use std::io;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

const RTM_NEWLINK: u16 = 16;
const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
const NLMSG_ERROR: u16 = 2;
const IFF_UP: u32 = 1;
/// The loopback is the first interface of every namespace.
const LOOPBACK: u32 = 1;
const LENGTH: u32 = 32;

/// Brings it up.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn up() -> io::Result<()> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &request(), SendFlags::empty(), &kernel)?;
    let mut answer = [0; 512];
    let (_, length) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let word = |at: usize| answer.get(at..at + 4).and_then(|it| it.try_into().ok());
    let kind = u16::from_ne_bytes([answer[4], answer[5]]);
    match word(16).map(i32::from_ne_bytes) {
        Some(0) if kind == NLMSG_ERROR && length >= 20 => Ok(()),
        Some(error) if kind == NLMSG_ERROR => Err(io::Error::from_raw_os_error(-error)),
        Some(_) | None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// A header, and the interface with the flag that is to be set.
fn request() -> Vec<u8> {
    let mut request = Vec::with_capacity(32);
    request.extend(LENGTH.to_ne_bytes());
    request.extend(RTM_NEWLINK.to_ne_bytes());
    request.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([0; 4]);
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    request
}
