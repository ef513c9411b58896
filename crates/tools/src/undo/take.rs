//! Takes a snapshot of a workspace, in one pass.
//!
//! A folder whose stat did not change has the same names in it as the last time, so it is neither listed
//! nor matched against the rules about what git ignores, unless these changed. A file whose stat did not
//! change is not read.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::change::FileKind;
use rayon::prelude::*;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat, statat,
};

use super::git_objects::{ObjectId, Tracked, is_object};
use super::ignore_rules::{self, IgnoreRules};
use super::pack::Pack;
use super::snapshot::{
    FORMAT, FileEntry, FolderEntry, Moment, Names, Snapshot, Stat, Stored, join,
};
use super::{CONTENT_LIMIT, FILE_LIMIT, FILES_LIMIT, Unrecorded, WASTE_LIMIT};
use crate::blocking::CancelFlag;
use crate::confined_fs;

/// Takes a snapshot. If nothing changed since the last one, the result is that one.
pub(super) fn take(
    root: &Path,
    last: Option<&Arc<Snapshot>>,
    tracked: &Tracked,
    pack: &Pack,
    flag: &CancelFlag,
) -> Result<Arc<Snapshot>, Unrecorded> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, root, directory, Mode::empty());
    let at = opened.map_err(|error| Unrecorded::Workspace(error.to_string()))?;
    let (outside, rules) = IgnoreRules::outside(root);
    let same_rules = last.is_some_and(|last| last.rules == rules);
    let known = last.iter().flat_map(|it| &it.folders).map(|it| (it.path.as_str(), it)).collect();
    let (now, last_at) = (pack.now()?, last.map(|last| last.at));
    let pass = Pass { root, at, last: last_at, known, tracked, pack, flag };
    let folders = pass.all(Pending { path: String::new(), rules: outside, same_rules })?;
    let git_index = root.join(".git/index").metadata().ok().map(|found| found.len());
    let same_index = |last: &Snapshot| last.git_index == git_index && last.pack == pack.path;
    if let Some(last) = last.filter(|last| same_rules && same_index(last)) {
        let mut pairs = last.folders.iter().zip(&folders);
        if last.folders.len() == folders.len() && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
        {
            return Ok(Arc::clone(last));
        }
    }
    let pack = pack.path.clone();
    Ok(Arc::new(Snapshot { format: FORMAT, at: now, pack, rules, git_index, folders }))
}

/// A folder that is to be looked at.
struct Pending {
    path: String,
    rules: Arc<IgnoreRules>,
    /// True if the rules around it are those of the last time.
    same_rules: bool,
}

/// What a look at a folder gives: the folder, and those in it.
type Visited = Option<(Arc<FolderEntry>, Vec<Pending>)>;

struct Pass<'a> {
    root: &'a Path,
    at: OwnedFd,
    /// When the last snapshot was taken.
    last: Option<Moment>,
    known: HashMap<&'a str, &'a Arc<FolderEntry>>,
    tracked: &'a Tracked,
    pack: &'a Pack,
    flag: &'a CancelFlag,
}

impl Pass<'_> {
    /// Looks at a folder and all below it, level by level: a level is looked at on several threads.
    fn all(&self, top: Pending) -> Result<Vec<Arc<FolderEntry>>, Unrecorded> {
        let (mut level, mut folders, mut files) = (vec![top], Vec::new(), 0);
        while !level.is_empty() {
            let visited: Result<Vec<Visited>, _> =
                level.par_iter().map(|it| self.folder(it)).collect();
            level = Vec::new();
            // What is gone by now was not there.
            for (folder, inside) in visited?.into_iter().flatten() {
                files += folder.files.len();
                folders.push(folder);
                level.extend(inside);
            }
            if files > FILES_LIMIT {
                return Err(Unrecorded::Many);
            }
        }
        Ok(folders)
    }

    fn folder(&self, pending: &Pending) -> Result<Visited, Unrecorded> {
        if self.flag.is_cancelled() {
            return Err(Unrecorded::Cancelled);
        }
        let Pending { path, rules, same_rules } = pending;
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let open = |flags| {
            let path = if path.is_empty() { "." } else { path };
            let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat2(&self.at, path, flags, Mode::empty(), inside)
        };
        let Ok(at) = open(OFlags::PATH) else { return Ok(None) };
        let Some(stat) = stat(&at, "") else { return Ok(None) };
        let last = self.known.get(path.as_str()).copied();
        let rules = IgnoreRules::within(rules, self.root.join(path));
        let own_rules = last.and_then(|last| last.file(ignore_rules::FILE)).map(|file| file.stat);
        let same_rules = *same_rules && own_rules == self::stat(&at, ignore_rules::FILE);
        let is_same = |it: &&Arc<FolderEntry>| same_rules && it.stat == stat && self.trusts(&stat);
        let same = last.filter(is_same);
        let (files, names) = match same {
            Some(last) => {
                let files = last.files.iter().map(|file| (file.name.as_str(), Some(file)));
                (self.files(&at, path, files)?, None)
            }
            None => {
                let listed = open(OFlags::RDONLY).ok();
                let listed = listed.map(|folder| list(&folder, &self.root.join(path), &rules));
                let (listed, names) = listed.unwrap_or_default();
                let known = |name| last.and_then(|last| last.file(name));
                let files = listed.iter().map(|name| (name.as_str(), known(name)));
                (self.files(&at, path, files)?, Some(names))
            }
        };
        let is_very_same = |last: &&Arc<FolderEntry>| {
            let mut pairs = last.files.iter().zip(&files);
            last.files.len() == files.len() && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let folder = same.filter(is_very_same).cloned().unwrap_or_else(|| {
            let names = names.or_else(|| Some(same?.names.clone())).unwrap_or_default();
            Arc::new(FolderEntry { path: path.clone(), stat, files, names })
        });
        let below = folder.names.folders.iter();
        let below =
            below.map(|name| Pending { path: folder.join(name), rules: rules.clone(), same_rules });
        let below = below.collect();
        Ok(Some((folder, below)))
    }

    /// True if nothing happened to what had the same stat when the last snapshot was taken.
    fn trusts(&self, stat: &Stat) -> bool {
        self.last.is_some_and(|last| stat.is_stable(last))
    }

    /// The files of a folder, with what is known of them. Those that changed are read.
    fn files<'n>(
        &self,
        at: &OwnedFd,
        folder: &str,
        names: impl Iterator<Item = (&'n str, Option<&'n Arc<FileEntry>>)>,
    ) -> Result<Vec<Arc<FileEntry>>, Unrecorded> {
        let mut files = Vec::with_capacity(names.size_hint().0);
        for (name, known) in names {
            let Some(stat) = self::stat(at, name) else { continue };
            match known.filter(|known| known.stat == stat && self.trusts(&stat)) {
                Some(known) => files.push(Arc::clone(known)),
                None if !stat.shape.has_content() => {}
                None => files.push(Arc::new(self.file(at, folder, name, (stat, known))?)),
            }
        }
        if self.pack.length() > CONTENT_LIMIT + WASTE_LIMIT {
            return Err(Unrecorded::Large);
        }
        Ok(files)
    }

    /// A file whose stat is new. The stat was taken before the content is read, so if the file changes
    /// now, the next snapshot shows it.
    fn file(
        &self,
        at: &OwnedFd,
        folder: &str,
        name: &str,
        (stat, last): (Stat, Option<&Arc<FileEntry>>),
    ) -> Result<FileEntry, Unrecorded> {
        let known = self.tracked.files.get(&join(folder, name));
        let known = known.filter(|_| stat.shape == FileKind::File);
        let tracked = known.or_else(|| last?.tracked.as_ref()).cloned();
        let stored = match known {
            // It is as it was when git was asked.
            Some(object) if stat.is_stable(self.tracked.at) => Stored::Object(object.clone()),
            Some(_) | None => match content(at, name, stat) {
                Some(content) => self.store(&content, tracked.as_ref(), last)?,
                None if stat.size > FILE_LIMIT => Stored::Large,
                None => Stored::Unreadable,
            },
        };
        Ok(FileEntry { name: name.to_owned(), stat, stored, tracked })
    }

    fn store(
        &self,
        content: &[u8],
        tracked: Option<&ObjectId>,
        last: Option<&Arc<FileEntry>>,
    ) -> Result<Stored, Unrecorded> {
        if let Some(object) = tracked.filter(|object| is_object(object, content)) {
            return Ok(Stored::Object(object.clone()));
        }
        let last = last.and_then(|last| match &last.stored {
            Stored::Pack(extract) => Some(extract),
            Stored::Object(_) | Stored::Large | Stored::Unreadable => None,
        });
        Ok(Stored::Pack(self.pack.add(content, last)?))
    }
}

/// The names of the files in a folder, and of what else is there.
fn list(folder: &OwnedFd, path: &Path, rules: &IgnoreRules) -> (Vec<String>, Names) {
    let (mut files, mut names) = (Vec::new(), Names::default());
    for entry in Dir::read_from(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || confined_fs::is_temporary(name.to_bytes()) {
            continue;
        }
        let Ok(text) = name.to_str().map(str::to_owned) else {
            names.not_utf8 += 1;
            continue;
        };
        let kind = match entry.file_type() {
            FileType::Unknown => statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
            kind => kind,
        };
        let is_folder = kind == FileType::Directory;
        if text == ".git" || rules.ignore(&path.join(&text), is_folder) {
            names.ignored.push(text);
        } else if is_folder {
            names.folders.push(text);
        } else if matches!(kind, FileType::RegularFile | FileType::Symlink) {
            files.push(text);
        }
    }
    for names in [&mut files, &mut names.folders, &mut names.ignored] {
        names.sort_unstable();
    }
    (files, names)
}

/// What is in a file, or where a link leads; nothing if it cannot be read or is too long.
fn content(at: &OwnedFd, name: &str, stat: Stat) -> Option<Vec<u8>> {
    if stat.shape == FileKind::Link {
        return Some(readlinkat(at, name, Vec::new()).ok()?.into_bytes());
    }
    if stat.size > FILE_LIMIT {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(at, name, flags, Mode::empty()).ok()?);
    let mut content = Vec::with_capacity(usize::try_from(stat.size).ok()?);
    file.take(FILE_LIMIT + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= FILE_LIMIT).then_some(content)
}

/// The stat of something in a folder, or of the folder itself if there is no name.
fn stat(at: &OwnedFd, name: &str) -> Option<Stat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    statat(at, name, flags).ok().map(|found| Stat::of(&found))
}
