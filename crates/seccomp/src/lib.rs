//! Being asked by the kernel before another process's call goes on (`seccomp_unotify(2)`).
//!
//! A thread puts a filter on itself, and gets a [`Listener`] that whoever watches over it is handed.
//! Each call that the filter names waits until the listener lets it go on; if the listener is closed,
//! such calls fail, so nobody ever waits for somebody who is gone.
//!
//! This is the one crate with `unsafe` in it.

#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_long, c_ulong, c_void, iovec, pid_t, seccomp_notif, seccomp_notif_resp};

/// One instruction of a filter.
pub use libc::sock_filter as Instruction;

/// What a filter returns for a call that waits until it is let go on.
pub const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;

/// Room for a notice, should the kernel's be longer than the one that is known here.
const ROOM: usize = 64;

/// Where calls wait.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A call that waits.
#[derive(Clone, Copy, Debug)]
pub struct Notice {
    id: u64,
    /// The thread that makes it.
    pub thread: u32,
    /// Its number.
    pub call: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// Puts a filter on this thread and whatever it starts. The thread must have given up new privileges.
pub fn listen(filter: &[Instruction]) -> io::Result<Listener> {
    fits()?;
    let asking = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A call that waits should not be disturbed by every signal; older kernels do not know that.
    let calm = asking | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    match install(filter, calm) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(filter, asking),
        done => done,
    }
}

fn install(filter: &[Instruction], flags: c_ulong) -> io::Result<Listener> {
    let length = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program and its instructions outlive the call, which only reads them.
    let made = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    let file = c_int::try_from(checked(made)?).map_err(io::Error::other)?;
    // SAFETY: the kernel made this file for us, and nobody else knows of it.
    Ok(Listener(unsafe { OwnedFd::from_raw_fd(file) }))
}

/// Whether this kernel's notices fit into the room that there is for them.
fn fits() -> io::Result<()> {
    let mut sizes =
        libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the kernel writes these three numbers and nothing else.
    let asked = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes)
    };
    checked(asked)?;
    let longest = usize::from(sizes.seccomp_notif.max(sizes.seccomp_notif_resp));
    match longest <= ROOM * size_of::<u64>() {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::Unsupported)),
    }
}

impl Listener {
    /// Waits for a call; nothing if it ended before it could be told of.
    pub fn receive(&self) -> io::Result<Option<Notice>> {
        let mut room = [0_u64; ROOM];
        match self.ask(libc::SECCOMP_IOCTL_NOTIF_RECV, room.as_mut_ptr().cast()) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                return Ok(None);
            }
            done => done?,
        }
        // SAFETY: the room is aligned, longer than a notice, and holds one now; every pattern of bits
        // is one.
        let told = unsafe { room.as_ptr().cast::<seccomp_notif>().read() };
        let (call, arguments) = (i64::from(told.data.nr), told.data.args);
        Ok(Some(Notice { id: told.id, thread: told.pid, call, arguments }))
    }

    /// Lets a call go on as it was made. One that is gone by now needs no leave.
    pub fn go_on(&self, notice: &Notice) -> io::Result<()> {
        let mut room = [0_u64; ROOM];
        let flags =
            u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).map_err(io::Error::other)?;
        let answer = seccomp_notif_resp { id: notice.id, val: 0, error: 0, flags };
        // SAFETY: the room is aligned and longer than an answer.
        unsafe { room.as_mut_ptr().cast::<seccomp_notif_resp>().write(answer) };
        match self.ask(libc::SECCOMP_IOCTL_NOTIF_SEND, room.as_mut_ptr().cast()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            done => done,
        }
    }

    /// Whether a call still waits: if so, its thread is the one that was named and no other.
    pub fn waits(&self, notice: &Notice) -> bool {
        let mut id = notice.id;
        self.ask(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, (&raw mut id).cast()).is_ok()
    }

    /// Asks the kernel. What is pointed to must have the room that the request needs.
    fn ask(&self, request: c_ulong, about: *mut c_void) -> io::Result<()> {
        // SAFETY: all callers, which are in this file, point to as much room as the request needs.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), request, about) };
        checked(c_long::from(done)).map(drop)
    }
}

impl Notice {
    /// Reads memory of the process that makes the call; gives how much could be read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let thread = pid_t::try_from(self.thread).map_err(io::Error::other)?;
        let address = usize::try_from(address).map_err(io::Error::other)?;
        let here = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let there = iovec { iov_base: address as *mut c_void, iov_len: into.len() };
        // SAFETY: the kernel writes no more than the length of `into`, and checks the other address.
        let read = unsafe { libc::process_vm_readv(thread, &here, 1, &there, 1, 0) };
        usize::try_from(read).map_err(|_| io::Error::last_os_error())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A listener that was handed over.
impl From<OwnedFd> for Listener {
    fn from(file: OwnedFd) -> Self {
        Self(file)
    }
}

fn checked(answer: c_long) -> io::Result<c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
