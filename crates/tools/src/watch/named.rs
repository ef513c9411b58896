//! What a call names that it may change.

use std::io;

use quintet_seccomp::Notice;

/// The bit of calls for the x32 ABI, which are the same otherwise.
const X32: i64 = 0x4000_0000;

/// Calls that this machine has beside those with `at` in their names.
#[cfg(target_arch = "x86_64")]
mod old {
    pub(super) const OPEN: i64 = libc::SYS_open;
    pub(super) const CREAT: i64 = libc::SYS_creat;
    pub(super) const UNLINK: i64 = libc::SYS_unlink;
    pub(super) const RMDIR: i64 = libc::SYS_rmdir;
    pub(super) const MKDIR: i64 = libc::SYS_mkdir;
    pub(super) const MKNOD: i64 = libc::SYS_mknod;
    pub(super) const SYMLINK: i64 = libc::SYS_symlink;
    pub(super) const LINK: i64 = libc::SYS_link;
    pub(super) const RENAME: i64 = libc::SYS_rename;
    pub(super) const CHMOD: i64 = libc::SYS_chmod;
    pub(super) const RENAMEAT: i64 = libc::SYS_renameat;
}

/// Newer machines have but the last of these; no call has the other numbers.
#[cfg(not(target_arch = "x86_64"))]
mod old {
    pub(super) const OPEN: i64 = -1;
    pub(super) const CREAT: i64 = -2;
    pub(super) const UNLINK: i64 = -3;
    pub(super) const RMDIR: i64 = -4;
    pub(super) const MKDIR: i64 = -5;
    pub(super) const MKNOD: i64 = -6;
    pub(super) const SYMLINK: i64 = -7;
    pub(super) const LINK: i64 = -8;
    pub(super) const RENAME: i64 = -9;
    pub(super) const CHMOD: i64 = -10;
    pub(super) const RENAMEAT: i64 = 38;
}

const FCHMODAT2: i64 = 452;

/// Calls that may always change something. What `openat2` does is not in its arguments.
pub(super) const ALWAYS: [i64; 21] = [
    old::CREAT,
    old::UNLINK,
    old::RMDIR,
    old::MKDIR,
    old::MKNOD,
    old::SYMLINK,
    old::LINK,
    old::RENAME,
    old::CHMOD,
    old::RENAMEAT,
    libc::SYS_truncate,
    libc::SYS_openat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat2,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
];

/// Calls that change something if they open a file for writing, and which argument says so.
pub(super) const IF_WRITING: [(i64, u8); 2] = [(old::OPEN, 1), (libc::SYS_openat, 2)];

/// What is done to something that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It is written, made or cut short.
    Write(At),
    /// The name comes or goes.
    Name(At),
    /// Its permissions become others.
    Mode(At),
    /// It gets a second name.
    Link(At, At),
    /// It gets another name instead.
    Move(At, At),
    /// Two swap their names.
    Swap(At, At),
}

/// A path as it stands in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// The directory that it starts from, by its number or as the current one.
    pub(super) folder: i32,
    /// Where the text is; nothing if the directory itself is meant.
    pub(super) text: Option<u64>,
    /// Whether a link at its end is followed.
    pub(super) follow: bool,
}

/// What a call does; nothing if it changes nothing.
pub(super) fn deed(notice: &Notice) -> io::Result<Option<Deed>> {
    let [a, b, c, d, e, _] = notice.arguments;
    let here = libc::AT_FDCWD;
    let deed = match notice.call & !X32 {
        old::OPEN => Deed::Write(opened(here, a, b)),
        libc::SYS_openat => Deed::Write(opened(number(a), b, c)),
        libc::SYS_openat2 => return Ok(looked_into(notice)?.map(Deed::Write)),
        old::CREAT | libc::SYS_truncate => Deed::Write(followed(here, a)),
        old::UNLINK | old::RMDIR | old::MKDIR | old::MKNOD => Deed::Name(itself(here, a)),
        libc::SYS_unlinkat | libc::SYS_mkdirat | libc::SYS_mknodat => {
            Deed::Name(itself(number(a), b))
        }
        old::SYMLINK => Deed::Name(itself(here, b)),
        libc::SYS_symlinkat => Deed::Name(itself(number(b), c)),
        old::LINK => Deed::Link(itself(here, a), itself(here, b)),
        libc::SYS_linkat => Deed::Link(linked(number(a), b, e), itself(number(c), d)),
        old::RENAME => Deed::Move(itself(here, a), itself(here, b)),
        old::RENAMEAT => Deed::Move(itself(number(a), b), itself(number(c), d)),
        libc::SYS_renameat2 => {
            let (old, new) = (itself(number(a), b), itself(number(c), d));
            let swap = e & u64::from(libc::RENAME_EXCHANGE) != 0;
            if swap { Deed::Swap(old, new) } else { Deed::Move(old, new) }
        }
        old::CHMOD => Deed::Mode(followed(here, a)),
        libc::SYS_fchmod => Deed::Mode(At { folder: number(a), text: None, follow: false }),
        libc::SYS_fchmodat => Deed::Mode(followed(number(a), b)),
        FCHMODAT2 => {
            let follow = d & bit(libc::AT_SYMLINK_NOFOLLOW) == 0;
            Deed::Mode(At { follow, ..itself(number(a), b) })
        }
        _ => return Ok(None),
    };
    Ok(Some(deed))
}

/// What `openat2` opens, if it is for writing.
fn looked_into(notice: &Notice) -> io::Result<Option<At>> {
    let [folder, text, how, ..] = notice.arguments;
    let mut flags = [0; 8];
    if notice.read(how, &mut flags)? < flags.len() {
        return Ok(None);
    }
    let flags = u64::from_ne_bytes(flags);
    let writing = bit(libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC);
    Ok((flags & writing != 0).then(|| opened(number(folder), text, flags)))
}

fn opened(folder: i32, text: u64, flags: u64) -> At {
    let fresh = bit(libc::O_CREAT | libc::O_EXCL);
    let stays = flags & bit(libc::O_NOFOLLOW) != 0 || flags & fresh == fresh;
    At { folder, text: Some(text), follow: !stays }
}

fn linked(folder: i32, text: u64, flags: u64) -> At {
    At { folder, text: Some(text), follow: flags & bit(libc::AT_SYMLINK_FOLLOW) != 0 }
}

fn followed(folder: i32, text: u64) -> At {
    At { folder, text: Some(text), follow: true }
}

fn itself(folder: i32, text: u64) -> At {
    At { folder, text: Some(text), follow: false }
}

/// The kernel takes the lower half of the argument.
#[expect(clippy::cast_possible_truncation, reason = "so does the kernel")]
fn number(argument: u64) -> i32 {
    argument as i32
}

fn bit(flag: i32) -> u64 {
    u64::from(flag.unsigned_abs())
}
