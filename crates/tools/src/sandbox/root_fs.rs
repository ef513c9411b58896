//! A root file system with only the paths that a policy names.
//!
//! It is built on a small file system in memory: readable paths are bound read-only, writable ones read-write,
//! `/tmp` is the scratch directory, and `/proc`, `/dev/shm` and `/dev/pts` are private. Nothing else exists,
//! including the sockets of other programs.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};
use rustix::thread::UnshareFlags;

use super::namespaces::unshare;

/// How much can be written outside of the places that a policy names, in memory.
const SIZE: &str = "size=256m,mode=755";
const SHARED_MEMORY: &str = "size=1g,mode=1777";

/// What every new root has of its own.
const OWN: [&str; 3] = ["/proc", "/dev", "/tmp"];

/// Files with the system's secrets, which are empty in a new root: a daemon that runs as root could read
/// them.
pub(super) const SECRETS: [&str; 5] =
    ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// What the new root has.
#[derive(Debug)]
pub(super) struct RootFs<'a> {
    /// Where the new root is put together; a folder in it becomes `/tmp`.
    pub(super) scratch: &'a Path,
    /// An empty folder that can be written.
    pub(super) home: Option<&'a Path>,
    pub(super) read: &'a [PathBuf],
    pub(super) write: &'a [PathBuf],
}

impl RootFs<'_> {
    /// Makes it the root of this process and what it starts. The working directory stays the same.
    ///
    /// # Errors
    /// What could not be done, and why.
    pub(super) fn enter(&self) -> Result<(), String> {
        let here = std::env::current_dir().map_err(|error| error.to_string())?;
        let done = unshare(UnshareFlags::NEWNS).map_err(|error| ("mount namespace".into(), error));
        let done = done.and_then(|()| self.build());
        let done = done.and_then(|()| at(&here, chdir(&here).map_err(Into::into)));
        done.map_err(|(what, error): (PathBuf, io::Error)| format!("{}: {error}", what.display()))
    }

    fn build(&self) -> Result<(), Failed> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        at(Path::new("/"), mount_change("/", private).map_err(Into::into))?;
        let (root, own) = (&self.scratch.join("root"), self.scratch.join("tmp"));
        make(root)?;
        make(&own)?;
        new(root, "tmpfs", SIZE)?;
        // Not a link: what is placed below it would be made where the link leads now.
        for tmp in ["tmp", "var/tmp"].map(|name| root.join(name)) {
            make(&tmp)?;
            bind(&own, &tmp)?;
        }
        let home = self.home.filter(|home| home.is_absolute() && home.components().count() > 1);
        home.map_or(Ok(()), |home| make(&inside(root, home)))?;
        devices(root)?;
        self.places(root)?;
        for secret in SECRETS.map(|path| inside(root, Path::new(path))) {
            if secret.is_file() {
                bind(Path::new("/dev/null"), &secret)?;
            }
        }
        let proc = root.join("proc");
        make(&proc)?;
        new(&proc, "proc", "")?;
        at(root, chdir(root).and_then(|()| pivot_root(".", ".")).map_err(Into::into))?;
        at(root, unmount(".", UnmountFlags::DETACH).map_err(Into::into))
    }

    /// Binds what the policy names, the outer first.
    fn places(&self, root: &Path) -> Result<(), Failed> {
        let read = self.read.iter().flat_map(|path| expanded(path)).map(|path| (path, false));
        let write = self.write.iter().flat_map(|path| expanded(path)).map(|path| (path, true));
        let mut places: Vec<(PathBuf, bool)> = read.chain(write).collect();
        places.retain(|(path, _)| !path.starts_with("/proc") && path.as_path() != self.scratch);
        places.sort();
        let writable: Vec<PathBuf> =
            self.write.iter().filter_map(|path| path.canonicalize().ok()).collect();
        for (path, is_writable) in places {
            // What is not there is left out.
            let Ok(real) = path.canonicalize() else { continue };
            if real != path {
                link(root, &path)?;
            }
            // What is in a place that may be written is not made read-only by being named again.
            if !is_writable && writable.iter().any(|place| real.starts_with(place)) {
                continue;
            }
            place(root, &real, is_writable)?;
        }
        Ok(())
    }
}

/// Makes the devices that programs take for granted.
fn devices(root: &Path) -> Result<(), Failed> {
    let dev = root.join("dev");
    for name in ["pts", "shm"] {
        make(&dev.join(name))?;
    }
    for name in DEVICES.into_iter().filter(|name| Path::new("/dev").join(name).exists()) {
        at(&dev, File::create(dev.join(name)).map(drop))?;
        bind(&Path::new("/dev").join(name), &dev.join(name))?;
    }
    for (target, name) in DEVICE_LINKS {
        at(&dev, symlink(target, dev.join(name)))?;
    }
    new(&dev.join("shm"), "tmpfs", SHARED_MEMORY)?;
    new(&dev.join("pts"), "devpts", "newinstance,ptmxmode=0666,mode=620")
}

/// A path, or what is in the root of the file system but for what a new one has of its own.
fn expanded(path: &Path) -> Vec<PathBuf> {
    if path.components().count() > 1 {
        return vec![path.to_owned()];
    }
    let inside = fs::read_dir("/").into_iter().flatten().flatten().map(|entry| entry.path());
    inside.filter(|path| !OWN.iter().any(|own| path.as_path() == Path::new(own))).collect()
}

/// What failed, and how.
type Failed = (PathBuf, io::Error);

fn at<T>(path: &Path, done: io::Result<T>) -> Result<T, Failed> {
    done.map_err(|error| (path.to_owned(), error))
}

/// Where a path is below the new root.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn make(folder: &Path) -> Result<(), Failed> {
    at(folder, DirBuilder::new().recursive(true).mode(0o755).create(folder))
}

fn new(target: &Path, kind: &str, options: &str) -> Result<(), Failed> {
    let flags =
        MountFlags::NOSUID | if kind == "devpts" { MountFlags::NOEXEC } else { MountFlags::NODEV };
    let options = std::ffi::CString::new(options).unwrap_or_default();
    let done = mount(kind, target, kind, flags, Some(options.as_c_str()));
    at(target, done.map_err(Into::into))
}

fn bind(from: &Path, to: &Path) -> Result<(), Failed> {
    at(from, mount_bind_recursive(from, to).map_err(Into::into))
}

/// Binds a path at the same path.
fn place(root: &Path, path: &Path, is_writable: bool) -> Result<(), Failed> {
    let target = inside(root, path);
    // A parent may be bound already; then the path exists.
    if fs::symlink_metadata(&target).is_err() {
        if path.is_dir() {
            make(&target)?;
        } else {
            target.parent().map_or(Ok(()), make)?;
            at(&target, File::create(&target).map(drop))?;
        }
    }
    bind(path, &target)?;
    if is_writable { Ok(()) } else { protect(&target) }
}

/// Makes a bound place read-only. Flags that it has must stay, or the kernel refuses.
fn protect(target: &Path) -> Result<(), Failed> {
    let found = at(target, statvfs(target).map_err(Into::into))?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (has, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if found.contains(has) {
            flags |= flag;
        }
    }
    at(target, mount_remount(target, flags, OsStr::new("")).map_err(Into::into))
}

/// Recreates the first link on the way to a path, such as `/bin`, unless it is in a path that is bound already.
fn link(root: &Path, path: &Path) -> Result<(), Failed> {
    let mut around: Vec<_> = path.ancestors().collect();
    around.reverse();
    let link = around.into_iter().find_map(|it| Some((inside(root, it), fs::read_link(it).ok()?)));
    let Some((place, target)) = link.filter(|(place, _)| fs::symlink_metadata(place).is_err())
    else {
        return Ok(());
    };
    place.parent().map_or(Ok(()), make)?;
    at(&place, symlink(target, &place))
}
