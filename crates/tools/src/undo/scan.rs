//! Scans a workspace for a snapshot.
//!
//! A folder is listed again, and matched against the ignore rules, only if the rules, its stat or the
//! stat of something in it changed. A file whose stat did not change is not read.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::change::FileKind;
use rayon::prelude::*;
use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat, statat, unlinkat,
};

use super::git_objects::{Tracked, is_object};
use super::ignore_rules::{self, IgnoreRules};
use super::pack::Pack;
use super::snapshot::{Content, Entry, FORMAT, Folder, Snapshot, Stat, Timestamp};
use super::store::Last;
use super::{CONTENT_LIMIT, FILE_LIMIT, FILES_LIMIT, Unrecorded, WASTE_LIMIT};
use crate::blocking::CancelFlag;
use crate::confined_fs;

/// How old a temporary file is that a killed process left, in nanoseconds.
const ABANDONED_AGE: Timestamp = 60_000_000_000;

/// A folder to scan.
struct Pending {
    path: String,
    rules: Arc<IgnoreRules>,
    /// True if the rules outside the folder did not change.
    same_rules: bool,
}

/// A folder, and the folders in it; `None` if it is gone.
type Scanned = Option<(Arc<Folder>, Vec<Pending>)>;

struct Scan<'a> {
    root: &'a Path,
    directory: OwnedFd,
    at: Timestamp,
    last: Option<&'a Arc<Snapshot>>,
    known: HashMap<&'a str, &'a Arc<Folder>>,
    tracked: &'a Tracked,
    pack: &'a Pack,
    /// True if the contents of the last snapshot are in the pack.
    same_pack: bool,
    cancel: &'a CancelFlag,
}

/// Takes a snapshot. If nothing changed since the last one, it is that one. The files in `tracked` are
/// those that git had at the time `at`.
pub(super) fn scan(
    root: &Path,
    at: Timestamp,
    Last { snapshot: last, pack, .. }: &Last,
    tracked: &Tracked,
    cancel: &CancelFlag,
) -> Result<Arc<Snapshot>, Unrecorded> {
    let last = last.as_ref();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, root, flags, Mode::empty());
    let directory = directory.map_err(|errno| Unrecorded::Workspace(errno.into()))?;
    let known = last.iter().flat_map(|it| &it.folders).map(|it| (it.path.as_str(), it)).collect();
    let same_pack = last.is_some_and(|last| last.pack == pack.path);
    let scan = Scan { root, directory, at, last, known, tracked, pack, same_pack, cancel };
    let (rules, ignore_files) = IgnoreRules::outside(root);
    let same_rules = last.is_some_and(|last| last.ignore_files == ignore_files);
    let folders = scan.all(Pending { path: String::new(), rules, same_rules })?;
    let git_index = root.join(".git/index").metadata().ok().map(|found| found.len());
    let is_same = |last: &&Arc<Snapshot>| {
        let [old, new] = [&last.folders, &folders].map(|it| it.iter().map(Arc::as_ptr));
        same_rules && same_pack && last.git_index == git_index && old.eq(new)
    };
    Ok(last.filter(is_same).cloned().unwrap_or_else(|| {
        let pack = pack.path.clone();
        Arc::new(Snapshot { format: FORMAT, at, pack, ignore_files, git_index, folders })
    }))
}

impl Scan<'_> {
    /// Scans a folder and everything below it, level by level. A level is scanned on several threads.
    fn all(&self, top: Pending) -> Result<Vec<Arc<Folder>>, Unrecorded> {
        let (mut level, mut folders, mut count) = (vec![top], Vec::new(), 0);
        while !level.is_empty() {
            let scanned: Result<Vec<_>, _> = level.par_iter().map(|it| self.folder(it)).collect();
            level = Vec::new();
            for (folder, below) in scanned?.into_iter().flatten() {
                count += folder.entries.len();
                folders.push(folder);
                level.extend(below);
            }
            if count > FILES_LIMIT {
                return Err(Unrecorded::TooManyFiles);
            }
        }
        Ok(folders)
    }

    fn folder(&self, pending: &Pending) -> Result<Scanned, Unrecorded> {
        let Pending { path, rules, same_rules } = pending;
        if self.cancel.is_cancelled() {
            return Err(Unrecorded::Cancelled);
        }
        let Some(at) = self.open(path, OFlags::PATH) else { return Ok(None) };
        let Some(stat) = stat(&at, "") else { return Ok(None) };
        let last = self.known.get(path.as_str()).copied();
        let own_rules = last.and_then(|last| last.entry(ignore_rules::FILE)).map(|it| it.stat);
        let same_rules = *same_rules && own_rules == self::stat(&at, ignore_rules::FILE);
        let rules = IgnoreRules::within(rules, self.root.join(path));
        let is_known = |known: &Entry| {
            let stat = self::stat(&at, &known.name);
            stat.is_some_and(|stat| self.is_unchanged(known, stat))
        };
        let is_same = |last: &&Arc<Folder>| {
            same_rules && self.is_trusted(last.stat, stat) && last.entries.iter().all(is_known)
        };
        let folder = match last.filter(is_same) {
            Some(same) => Arc::clone(same),
            None => Arc::new(self.list(&at, path, stat, &rules)?),
        };
        let folders = folder.entries.iter().filter(|it| it.content == Content::Folder);
        let below = folders.map(|it| Pending {
            path: folder.join(&it.name),
            rules: rules.clone(),
            same_rules,
        });
        let below = below.collect();
        Ok(Some((folder, below)))
    }

    fn open(&self, path: &str, flags: OFlags) -> Option<OwnedFd> {
        let path = if path.is_empty() { "." } else { path };
        let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(&self.directory, path, flags, Mode::empty(), inside).ok()
    }

    /// True if nothing happened since the last scan to what had the stat `old` then.
    fn is_trusted(&self, old: Stat, new: Stat) -> bool {
        old == new && self.last.is_some_and(|last| old.is_stable(last.at))
    }

    /// True if an entry can be used again.
    fn is_unchanged(&self, known: &Entry, stat: Stat) -> bool {
        let is_here = self.same_pack || !matches!(known.content, Content::Pack(_));
        is_here && self.is_trusted(known.stat, stat)
    }

    fn list(
        &self,
        at: &OwnedFd,
        path: &str,
        stat: Stat,
        rules: &IgnoreRules,
    ) -> Result<Folder, Unrecorded> {
        let (entries, ignored) = (Vec::new(), Vec::new());
        let path = path.to_owned();
        let mut folder = Folder { path, stat, entries, ignored, has_other_names: false };
        let opened = self.open(&folder.path, OFlags::RDONLY);
        let listed = opened.iter().flat_map(Dir::read_from).flatten().flatten();
        for name in listed.map(|entry| entry.file_name().to_owned()) {
            let Ok(name) = name.into_string() else {
                folder.has_other_names = true;
                continue;
            };
            let Some(stat) = self::stat(at, &name).filter(|_| name != "." && name != "..") else {
                continue;
            };
            let place = self.root.join(&folder.path).join(&name);
            if confined_fs::is_temporary(name.as_bytes()) {
                if stat.changed.saturating_add(ABANDONED_AGE) < self.at {
                    let _gone = unlinkat(at, &name, AtFlags::empty());
                }
            } else if name == ".git" || rules.ignore(&place, stat.kind == FileKind::Folder) {
                folder.ignored.push(name);
            } else if stat.kind == FileKind::Folder || stat.kind.has_content() {
                let entry = self.entry(at, &folder, name, stat)?;
                folder.entries.push(entry);
            }
        }
        folder.entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        folder.ignored.sort_unstable();
        if self.pack.length() > CONTENT_LIMIT + WASTE_LIMIT {
            return Err(Unrecorded::TooLarge);
        }
        Ok(folder)
    }

    /// An entry with its content, which is read if it may have changed. The stat is older than the
    /// content, so the next scan notices a change meanwhile.
    fn entry(
        &self,
        at: &OwnedFd,
        folder: &Folder,
        name: String,
        stat: Stat,
    ) -> Result<Entry, Unrecorded> {
        let last = self.known.get(folder.path.as_str()).and_then(|it| it.entry(&name));
        if let Some(known) = last.filter(|known| self.is_unchanged(known, stat)) {
            return Ok(known.clone());
        }
        let object = self.tracked.get(&folder.join(&name)).filter(|_| stat.kind == FileKind::File);
        let tracked = object.or_else(|| last?.tracked.as_ref()).cloned();
        let in_pack = last.filter(|_| self.same_pack).and_then(|last| match &last.content {
            Content::Pack(extract) => Some(extract),
            Content::Folder | Content::Git(_) | Content::Large | Content::Unreadable => None,
        });
        let content = match (object, &tracked) {
            _ if stat.kind == FileKind::Folder => Content::Folder,
            (Some(object), _) if stat.is_stable(self.at) => Content::Git(object.clone()),
            (_, tracked) => match read(at, &name, stat) {
                Some(bytes) => match tracked.as_ref().filter(|it| is_object(it, &bytes)) {
                    Some(object) => Content::Git(object.clone()),
                    None => Content::Pack(self.pack.add(&bytes, in_pack)?),
                },
                None if stat.size > FILE_LIMIT => Content::Large,
                None => Content::Unreadable,
            },
        };
        Ok(Entry { name, stat, content, tracked })
    }
}

/// The content of a file, or the target of a link; `None` if it cannot be read or is too large.
fn read(at: &OwnedFd, name: &str, stat: Stat) -> Option<Vec<u8>> {
    if stat.kind == FileKind::Link {
        return Some(readlinkat(at, name, Vec::new()).ok()?.into_bytes());
    }
    let size = usize::try_from(stat.size).ok().filter(|_| stat.size <= FILE_LIMIT)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(at, name, flags, Mode::empty()).ok()?);
    let mut content = Vec::with_capacity(size);
    file.take(FILE_LIMIT + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= FILE_LIMIT).then_some(content)
}

/// The stat of something in a folder, or of the folder itself if the name is empty.
fn stat(at: &OwnedFd, name: &str) -> Option<Stat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    statat(at, name, flags).ok().map(|found| Stat::of(&found))
}
