//! Watches a workspace with inotify: without an event, nothing has changed.
//!
//! The kernel queues an event before the change returns to its author, so polling early misses nothing. There
//! are no events for writes through mapped memory, through a hard link elsewhere, or by another machine.
//! Network file systems are therefore not watched, and a watcher should not be relied on for long.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, Event, ReadFlags, Reader, WatchFlags};
use rustix::fs::statfs;
use rustix::io::Errno;

use crate::survey::{MARKS, around};

/// At most so many folders are watched: the kernel has room for so many for all programs of a user.
const FOLDERS_LIMIT: usize = 1_000;

/// File systems that only this machine writes, by their magic numbers: ext4, XFS, Btrfs, tmpfs, F2FS,
/// ZFS, bcachefs, overlays.
const LOCAL_FILE_SYSTEMS: [u64; 8] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0x0102_1994,
    0xF2F5_2010,
    0x2FC1_2FC1,
    0xCA45_1A4E,
    0x794C_7630,
];

const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The most events per poll; beyond that, everything counts as changed.
const EVENTS_LIMIT: usize = 20_000;

/// Events that end the watch of a folder or mean that events were lost.
const WATCH_ENDED: ReadFlags = ReadFlags::IGNORED
    .union(ReadFlags::QUEUE_OVERFLOW)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::DELETE_SELF)
    .union(ReadFlags::MOVE_SELF);

/// Watches a workspace.
#[derive(Debug)]
pub(super) struct InotifyWatcher {
    kernel: OwnedFd,
    /// Folders outside of the workspace, of which only a few names matter.
    around: HashSet<i32>,
}

/// What a watcher saw since it was asked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Observed {
    Nothing,
    /// Something changed in the folders it watches.
    Change,
    /// There are other folders now than those it watches.
    Move,
}

impl InotifyWatcher {
    /// Watches these folders of a workspace, and those around it for what matters to it.
    pub(super) fn new<'a>(
        root: &Path,
        folders: impl ExactSizeIterator<Item = &'a PathBuf>,
    ) -> io::Result<Self> {
        if folders.len() > FOLDERS_LIMIT || !is_local(root)? || root.canonicalize()? != root {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let kernel = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let (device, mut watcher) =
            (fs::metadata(root)?.dev(), Self { kernel, around: HashSet::new() });
        // What is around may be forbidden, and is found out before much is watched.
        for folder in around(root).iter().filter(|folder| folder.is_dir()) {
            let watch = inotify::add_watch(&watcher.kernel, folder, CHANGES)?;
            watcher.around.insert(watch);
        }
        for folder in folders {
            let folder = root.join(folder);
            if fs::metadata(&folder)?.dev() != device {
                return Err(io::ErrorKind::Unsupported.into());
            }
            inotify::add_watch(&watcher.kernel, &folder, CHANGES)?;
        }
        Ok(watcher)
    }

    /// What it saw since the last time. Never waits.
    pub(super) fn poll(&self) -> Observed {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.kernel, &mut room);
        let mut seen = Observed::Nothing;
        for _ in 0..EVENTS_LIMIT {
            seen = match reader.next() {
                Ok(event) => seen.max(self.meaning(&event)),
                Err(Errno::INTR) => seen,
                Err(Errno::AGAIN) => return seen,
                Err(_) => return Observed::Move,
            };
            if seen == Observed::Move {
                return seen;
            }
        }
        Observed::Move
    }

    fn meaning(&self, event: &Event<'_>) -> Observed {
        let (what, name) = (event.events(), event.file_name().map(|name| name.to_bytes()));
        let is_around = self.around.contains(&event.wd());
        let matters = name.is_some_and(|name| MARKS.iter().any(|mark| mark.as_bytes() == name));
        if is_around && !matters && !what.intersects(WATCH_ENDED) {
            return Observed::Nothing;
        }
        // Rights of a folder decide what can be read in it, but it stays the same folder.
        let other_folders = what.contains(ReadFlags::ISDIR) && !what.contains(ReadFlags::ATTRIB);
        let is_mark = name == Some(b".git");
        if what.intersects(WATCH_ENDED) || other_folders || is_mark {
            Observed::Move
        } else {
            Observed::Change
        }
    }
}

fn is_local(root: &Path) -> io::Result<bool> {
    let kind = statfs(root)?.f_type as u64;
    Ok(LOCAL_FILE_SYSTEMS.contains(&(kind & 0xFFFF_FFFF)))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, remove_file, rename, write};

    use super::*;

    fn watching(root: &Path) -> InotifyWatcher {
        InotifyWatcher::new(root, [PathBuf::new(), "src".into()].iter()).unwrap()
    }

    /// What a watcher says after something was done.
    fn after(change: impl Fn(&Path)) -> Observed {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("work");
        create_dir_all(root.join("src/deep")).unwrap();
        write(root.join("src/a"), "1").unwrap();
        let watcher = watching(&root);
        assert_eq!(watcher.poll(), Observed::Nothing);
        change(&root);
        let seen = watcher.poll();
        // What was told once is not told again.
        assert!(watcher.poll() == Observed::Nothing || seen == Observed::Move);
        seen
    }

    #[test]
    fn it_sees_every_change_of_a_file() {
        assert_eq!(after(|root| write(root.join("src/a"), "2").unwrap()), Observed::Change);
        assert_eq!(after(|root| write(root.join("new"), "2").unwrap()), Observed::Change);
        assert_eq!(after(|root| remove_file(root.join("src/a")).unwrap()), Observed::Change);
        let away = |root: &Path| rename(root.join("src/a"), root.join("../a")).unwrap();
        assert_eq!(after(away), Observed::Change);
    }

    #[test]
    fn it_knows_when_it_watches_the_wrong_folders() {
        assert_eq!(after(|root| create_dir_all(root.join("src/more")).unwrap()), Observed::Move);
        assert_eq!(
            after(|root| rename(root.join("src"), root.join("lib")).unwrap()),
            Observed::Move
        );
        assert_eq!(
            after(|root| rename(root, root.with_file_name("away")).unwrap()),
            Observed::Move
        );
    }

    #[test]
    fn of_what_is_around_only_what_matters_is_told() {
        assert_eq!(after(|root| write(root.join("../noise"), "").unwrap()), Observed::Nothing);
        assert_eq!(after(|root| write(root.join("../AGENTS.md"), "").unwrap()), Observed::Change);
        assert_eq!(after(|root| create_dir_all(root.join("../.git")).unwrap()), Observed::Move);
    }

    #[test]
    fn who_was_told_too_much_knows_nothing() {
        let much = |root: &Path| {
            for n in 0..=EVENTS_LIMIT {
                write(root.join(["a", "b"][n % 2]), "").unwrap();
            }
        };
        assert_eq!(after(much), Observed::Move);
    }

    #[test]
    fn it_is_not_posted_where_it_would_not_be_told_of_everything() {
        assert!(InotifyWatcher::new(Path::new("/proc/self"), [PathBuf::new()].iter()).is_err());
        let dir = tempfile::tempdir().unwrap();
        let many = vec![PathBuf::new(); FOLDERS_LIMIT + 1];
        assert!(InotifyWatcher::new(dir.path(), many.iter()).is_err());
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        assert!(InotifyWatcher::new(&dir.path().join("link"), [PathBuf::new()].iter()).is_err());
    }
}
