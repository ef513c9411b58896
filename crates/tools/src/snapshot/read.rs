//! Reads the files that changed since the last snapshot.

use std::collections::HashMap;
use std::fs::File as Disk;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use quintet_kernel::change::FileKind;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};

use super::index::{File, Folder, Index, Kept, Moment, Stat};
use super::list::{Listed, Listing, Names, share};
use super::objects::{Oid, is_object};
use super::pack::{self, Pack};
use super::{CONTENT_LIMIT, FILE_LIMIT, Unrecorded};
use crate::blocking::Flag;

/// Reads what changed. If nothing did, the result is the old index itself.
pub(super) fn read(
    root: &Path,
    listing: Listing,
    tracked: &HashMap<String, Oid>,
    pack: &Pack,
    flag: &Flag,
) -> Result<Arc<Index>, Unrecorded> {
    let Listing { old, rules, folders } = listing;
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, root, directory, Mode::empty());
    let at = opened.map_err(|error| Unrecorded::Workspace(error.to_string()))?;
    let reader = Reader { root: at, now: pack.now()?, tracked, pack, flag };
    let folders = reader.all(folders)?;
    if let Some(old) = old.filter(|old| old.pack == pack.path() && old.rules == rules) {
        let pairs = || old.folders.iter().zip(&folders);
        if old.folders.len() == folders.len() && pairs().all(|(one, other)| Arc::ptr_eq(one, other))
        {
            return Ok(old);
        }
    }
    Ok(Arc::new(Index::new(reader.now, pack.path(), rules, folders)))
}

struct Reader<'a> {
    root: OwnedFd,
    now: Moment,
    tracked: &'a HashMap<String, Oid>,
    pack: &'a Pack,
    flag: &'a Flag,
}

impl Reader<'_> {
    /// Reads folders, on several threads where much changed.
    fn all(&self, mut folders: Vec<Listed>) -> Result<Vec<Arc<Folder>>, Unrecorded> {
        let changed: usize = folders.iter().map(changed).sum();
        let share = share(changed * 4, folders.len());
        let mut shares = Vec::new();
        while !folders.is_empty() {
            let rest = folders.split_off(share.min(folders.len()));
            shares.push(std::mem::replace(&mut folders, rest));
        }
        let read = |folders: Vec<Listed>| folders.into_iter().map(|it| self.folder(it)).collect();
        if let [_] = shares[..] {
            return shares.into_iter().map(read).collect::<Result<Vec<Vec<_>>, _>>().map(flat);
        }
        let done: Result<Vec<Vec<_>>, _> = thread::scope(|scope| {
            let threads: Vec<_> =
                shares.into_iter().map(|folders| scope.spawn(move || read(folders))).collect();
            let broken = || Err(Unrecorded::Workspace("reading files broke off".to_owned()));
            threads.into_iter().map(|it| it.join().unwrap_or_else(|_| broken())).collect()
        });
        done.map(flat)
    }

    fn folder(&self, listed: Listed) -> Result<Arc<Folder>, Unrecorded> {
        let Listed { old, path, stat, names, files } = listed;
        let is_same = matches!(names, Names::Same);
        if let Some(old) = old.as_ref().filter(|old| is_same && is_unchanged(old, &files)) {
            return Ok(old.clone());
        }
        let mut read = Vec::with_capacity(files.len());
        for (name, stat) in files {
            if self.flag.is_down() {
                return Err(Unrecorded::Cancelled);
            }
            let known = old.as_ref().and_then(|old| old.file(&name));
            read.push(match known.filter(|known| known.stat == stat && known.settled) {
                Some(known) => known.clone(),
                None => self.file(&path, name, stat, known)?,
            });
        }
        if self.pack.length() > CONTENT_LIMIT + super::WASTE_LIMIT {
            return Err(Unrecorded::Large);
        }
        let (folders, ignored, unnamed) = match (names, &old) {
            (Names::Read { folders, ignored, unnamed, .. }, _) => (folders, ignored, unnamed),
            (Names::Same, Some(old)) => (old.folders.clone(), old.ignored.clone(), old.unnamed),
            (Names::Same, None) => (Vec::new(), Vec::new(), 0),
        };
        let settled = stat.is_settled(self.now);
        Ok(Arc::new(Folder { path, stat, settled, files: read, folders, ignored, unnamed }))
    }

    /// A file whose stat is new. The stat was taken before the content is read, so if the file changes
    /// now, the next snapshot shows it.
    fn file(
        &self,
        folder: &str,
        name: String,
        stat: Stat,
        old: Option<&File>,
    ) -> Result<File, Unrecorded> {
        let path = super::index::join(folder, &name);
        let settled = stat.is_settled(self.now);
        let asked = self.tracked.get(&path);
        if let Some(oid) = asked.filter(|_| stat.shape == FileKind::File && stat.size <= FILE_LIMIT)
        {
            let (kept, tracked) = (Kept::Object(oid.clone()), asked.cloned());
            return Ok(File { name, stat, settled, kept, tracked });
        }
        let tracked = old.and_then(|old| old.tracked.clone());
        let kept = match self.content(&path, stat) {
            Some(content) => self.keep(&content, tracked.as_ref(), old.map(|old| &old.kept))?,
            None if stat.size > FILE_LIMIT => Kept::Large,
            None => Kept::Unreadable,
        };
        Ok(File { name, stat, settled, kept, tracked })
    }

    fn keep(
        &self,
        content: &[u8],
        tracked: Option<&Oid>,
        old: Option<&Kept>,
    ) -> Result<Kept, Unrecorded> {
        if let Some(oid) = tracked.filter(|oid| is_object(oid, content)) {
            return Ok(Kept::Object(oid.clone()));
        }
        match old {
            Some(Kept::Pack(place))
                if place.length == content.len() as u64 && place.hash == pack::hash(content) =>
            {
                Ok(Kept::Pack(place.clone()))
            }
            Some(_) | None => Ok(Kept::Pack(self.pack.add(content)?)),
        }
    }

    /// What is in a file, or where a link leads; nothing if it cannot be read or is too long.
    fn content(&self, path: &str, stat: Stat) -> Option<Vec<u8>> {
        if stat.shape == FileKind::Link {
            return Some(readlinkat(&self.root, path, Vec::new()).ok()?.into_bytes());
        }
        if stat.size > FILE_LIMIT {
            return None;
        }
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = Disk::from(openat2(&self.root, path, flags, Mode::empty(), inside).ok()?);
        let mut content = Vec::with_capacity(usize::try_from(stat.size).ok()?);
        file.take(FILE_LIMIT + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= FILE_LIMIT).then_some(content)
    }
}

fn flat(shares: Vec<Vec<Arc<Folder>>>) -> Vec<Arc<Folder>> {
    shares.into_iter().flatten().collect()
}

/// How many files of a folder have to be read.
fn changed(listed: &Listed) -> usize {
    let Some(old) = &listed.old else { return listed.files.len() };
    let is_new = |(name, stat): &&(String, Stat)| {
        !old.file(name).is_some_and(|file| file.stat == *stat && file.settled)
    };
    listed.files.iter().filter(is_new).count()
}

fn is_unchanged(old: &Folder, files: &[(String, Stat)]) -> bool {
    let same = |(old, (name, stat)): (&File, &(String, Stat))| {
        old.name == *name && old.stat == *stat && old.settled
    };
    old.files.len() == files.len() && old.files.iter().zip(files).all(same)
}
