//! Hands the listener from the command that will be watched to the supervisor, over a socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use quintet_seccomp::Listener;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// A message cannot be empty.
const BYTE: [u8; 1] = [0];

/// Hands a listener over.
pub(crate) fn hand_over(socket: impl AsFd, listener: &Listener) -> io::Result<()> {
    let files: [BorrowedFd<'_>; 1] = [listener.as_fd()];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut room);
    if !message.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(socket, &[IoSlice::new(&BYTE)], &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes a listener over; nothing if the other side has none.
pub(crate) fn take_over(socket: impl AsFd) -> io::Result<Option<Listener>> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let (mut message, mut byte) = (RecvAncillaryBuffer::new(&mut room), BYTE);
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let receive = || recvmsg(&socket, &mut bytes, &mut message, RecvFlags::CMSG_CLOEXEC);
    rustix::io::retry_on_intr(receive)?;
    let files = message.drain().filter_map(|it| match it {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok(files.flatten().next().map(Listener::from))
}
