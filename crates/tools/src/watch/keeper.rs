//! Keeps what files were, once for each path, before a call goes on.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use quintet_kernel::change::{Gap, Shape};
use rustix::fs::statvfs;

use super::Order;
use super::links::Links;
use super::log::{Identity, Kept, Line, Log, Noted, Was};
use crate::beneath::is_temporary;
use crate::show;

/// What copies leave of a disk, in bytes.
const SPARE: u64 = 512 * 1024 * 1024;

/// Keeps what files were.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) root: PathBuf,
    log: Log,
    /// The paths that were noted, and whether what was in them is still in them alone.
    known: HashMap<PathBuf, bool>,
    /// Paths whose content is still in a file, by that file.
    there: HashMap<Identity, Vec<PathBuf>>,
    links: Links,
    most: u64,
    left: u64,
    /// What was said to be left out.
    gaps: Vec<Gap>,
}

/// How much of a file is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// All of it.
    Content,
    /// What it is, for as long as what is in it stays.
    Status,
}

/// A copy of a file, which is made once even if it is kept by several paths.
#[derive(Debug)]
struct Copy<'a> {
    /// Where it is now.
    of: &'a Path,
    made: Option<Kept>,
}

impl<'a> Copy<'a> {
    fn of(path: &'a Path) -> Self {
        Self { of: path, made: None }
    }
}

impl Keeper {
    /// Goes on where the record of the same call ended.
    pub(super) fn open(order: &Order) -> io::Result<Self> {
        let (log, noted) = Log::open(&order.folder)?;
        let root = order.root.clone();
        let mut keeper = Self {
            links: Links::new(root.clone()),
            root,
            log,
            known: HashMap::new(),
            there: HashMap::new(),
            most: order.most,
            left: order.most,
            gaps: Vec::new(),
        };
        keeper.remember(noted);
        Ok(keeper)
    }

    fn remember(&mut self, noted: Noted) {
        for (path, was) in noted.paths {
            let is_there = was.as_ref().is_some_and(|was| was.content == Kept::There);
            if let Some(was) = was {
                if is_there {
                    self.there.entry(was.identity).or_default().push(path.clone());
                } else if was.shape == Shape::File {
                    self.left = self.left.saturating_sub(was.size);
                }
            }
            self.known.insert(path, is_there);
        }
        self.gaps = noted.gaps;
    }

    /// The path from the workspace on, if that is recorded.
    pub(super) fn inside(&self, path: &Path) -> Option<PathBuf> {
        let inside = path.strip_prefix(&self.root).ok()?;
        if inside.as_os_str().is_empty() || inside.file_name().is_some_and(is_temporary) {
            return None;
        }
        Some(inside.to_owned())
    }

    /// Keeps what is at a path, which is about to be written, renamed or removed.
    pub(super) fn touch(&mut self, path: &Path) -> io::Result<()> {
        let found = self.look(path);
        let mut copy = Copy::of(path);
        self.first(path, found.as_ref(), Need::Content, &mut copy)?;
        let Some(file) = found.filter(Metadata::is_file) else { return Ok(()) };
        for path in self.there.remove(&identity(&file)).unwrap_or_default() {
            self.first(&path, Some(&file), Need::Content, &mut copy)?;
        }
        Ok(())
    }

    /// Keeps what is in a file that is about to be written in place, by all of its names.
    pub(super) fn write(&mut self, path: &Path) -> io::Result<()> {
        self.in_place(path, Need::Content)
    }

    /// Keeps the permissions that something has by all of its names.
    pub(super) fn change_mode(&mut self, path: &Path) -> io::Result<()> {
        self.in_place(path, Need::Status)
    }

    fn in_place(&mut self, path: &Path, need: Need) -> io::Result<()> {
        let Some(found) = self.look(path) else { return self.touch(path) };
        if found.is_dir() && need == Need::Content {
            // A folder is opened for writing only to make a file in it that has no name.
            return Ok(());
        }
        match need {
            Need::Content => self.touch(path)?,
            Need::Status => self.note_status(path)?,
        }
        if !found.is_file() || found.nlink() < 2 {
            return Ok(());
        }
        let mut copy = Copy::of(path);
        for name in self.links.others(identity(&found), path) {
            self.first(&name, Some(&found), need, &mut copy)?;
        }
        Ok(())
    }

    /// Notes what is at a path; what is in it stays there for now.
    pub(super) fn note_status(&mut self, path: &Path) -> io::Result<()> {
        let found = self.look(path);
        self.first(path, found.as_ref(), Need::Status, &mut Copy::of(path))
    }

    /// A folder with what is in it goes to another path.
    pub(super) fn note_move(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.links.forget();
        self.log.note(&Line::Moved(from.to_owned(), to.to_owned()))
    }

    /// A file gets a further name.
    pub(super) fn note_name(&mut self, file: &Path, name: &Path) {
        if let Some(found) = self.look(file).filter(|found| found.is_file()) {
            self.links.add(identity(&found), [file, name]);
        }
    }

    /// Says that something is not recorded, once for each place and reason.
    pub(super) fn gap(&mut self, path: &str, reason: &str) -> io::Result<()> {
        if self.gaps.iter().any(|gap| gap.path == path && gap.reason == reason) {
            return Ok(());
        }
        let gap = Gap { path: path.to_owned(), paths: None, reason: reason.to_owned() };
        self.gaps.push(gap.clone());
        self.log.note(&Line::Gap(gap))
    }

    /// The command is over.
    pub(super) fn done(&mut self) -> io::Result<()> {
        self.log.note(&Line::Done)
    }

    fn look(&self, path: &Path) -> Option<Metadata> {
        self.root.join(path).symlink_metadata().ok()
    }

    /// Notes what is at a path, unless that is known already.
    fn first(
        &mut self,
        path: &Path,
        found: Option<&Metadata>,
        need: Need,
        copy: &mut Copy<'_>,
    ) -> io::Result<()> {
        match self.known.get(path) {
            Some(false) => return Ok(()),
            Some(true) if need == Need::Status => return Ok(()),
            Some(true) | None => {}
        }
        let was = found.map(|found| self.describe(path, found, need, copy)).transpose()?;
        let is_there = was.as_ref().is_some_and(|was| was.content == Kept::There);
        if let (true, Some(was)) = (is_there, &was) {
            self.there.entry(was.identity).or_default().push(path.to_owned());
        }
        self.known.insert(path.to_owned(), is_there);
        self.log.note(&Line::Was(path.to_owned(), was))
    }

    fn describe(
        &mut self,
        path: &Path,
        found: &Metadata,
        need: Need,
        copy: &mut Copy<'_>,
    ) -> io::Result<Was> {
        let shape = shape_of(found);
        let content = match (shape, need) {
            (Shape::File, Need::Status) => Kept::There,
            (Shape::File, Need::Content) => match &copy.made {
                Some(made) => made.clone(),
                None => copy.made.insert(self.copy(copy.of, found)?).clone(),
            },
            (Shape::Link, _) => match self.root.join(path).read_link() {
                Ok(target) => Kept::Target(target.into_os_string().into_vec()),
                Err(_) => Kept::Nowhere,
            },
            (Shape::Folder | Shape::Pipe | Shape::Socket | Shape::Other, _) => Kept::Nowhere,
        };
        let (mode, size) = (found.mode() & 0o7777, found.len());
        Ok(Was { shape, mode, size, identity: identity(found), content })
    }

    /// Copies what is in a file; where that cannot be done it is said.
    fn copy(&mut self, path: &Path, found: &Metadata) -> io::Result<Kept> {
        let size = found.len();
        if size > self.left {
            let most = self.most;
            let reason =
                format!("more than the {most} bytes that `undo.limit_bytes` allows a call");
            self.gap("", &reason)?;
            return Ok(Kept::Nowhere);
        }
        if statvfs(self.log.folder()).is_ok_and(|it| it.f_bavail * it.f_frsize < size + SPARE) {
            self.gap("", "the disk is nearly full")?;
            return Ok(Kept::Nowhere);
        }
        match self.try_copy(path) {
            Ok(number) => {
                self.left -= size;
                Ok(Kept::Copy(number))
            }
            Err(error) => {
                self.gap(&show::path(path), &format!("it cannot be copied: {error}"))?;
                Ok(Kept::Nowhere)
            }
        }
    }

    /// Between two files the kernel copies, and shares what is in them where the file system can.
    fn try_copy(&mut self, path: &Path) -> io::Result<u64> {
        let mut from = open(&self.root.join(path))?;
        let (number, mut to) = self.log.copy()?;
        io::copy(&mut from, &mut to)?;
        Ok(number)
    }
}

/// Opens a file; nothing here waits for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

pub(super) fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

fn shape_of(found: &Metadata) -> Shape {
    let kind = found.file_type();
    match kind {
        _ if kind.is_file() => Shape::File,
        _ if kind.is_symlink() => Shape::Link,
        _ if kind.is_dir() => Shape::Folder,
        _ if kind.is_fifo() => Shape::Pipe,
        _ if kind.is_socket() => Shape::Socket,
        _ => Shape::Other,
    }
}
