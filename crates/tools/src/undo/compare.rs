//! What happened to the files of a workspace between two snapshots.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::change::{FileKind, UnrecordedChange};
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, FileRange};

use super::snapshot::{FileEntry, FolderEntry, Moment, Snapshot, Stat, Stored};
use super::{FILE_LIMIT, Record, git_objects, uncovered};
use crate::confined_fs::ConfinedPath;

/// Finds out what happened.
pub(super) fn compare(root: &Path, old: &Snapshot, new: &Snapshot, since: Moment) -> Record {
    let mut comparison =
        Comparison { root, old, new, changes: BTreeMap::new(), gaps: BTreeMap::new() };
    comparison.folders();
    let Comparison { changes, mut gaps, .. } = comparison;
    uncovered::add(root, [old, new], since, &mut gaps);
    let one = |(path, (before, after))| ChangedFile { path, before, after };
    let gap = |(path, (paths, reason)): (String, (Option<u64>, String))| UnrecordedChange {
        path,
        paths,
        reason,
    };
    Record {
        changes: changes.into_iter().map(one).filter(|it| it.before != it.after).collect(),
        gaps: gaps.into_iter().map(gap).collect(),
    }
}

/// What is not recorded, by path: how many paths changed there, if that is known, and why.
pub(super) type Gaps = BTreeMap<String, (Option<u64>, String)>;

struct Comparison<'a> {
    root: &'a Path,
    old: &'a Snapshot,
    new: &'a Snapshot,
    changes: BTreeMap<String, (Option<FileContent>, Option<FileContent>)>,
    gaps: Gaps,
}

impl Comparison<'_> {
    fn folders(&mut self) {
        fn by_path(index: &Snapshot) -> HashMap<&str, &Arc<FolderEntry>> {
            index.folders.iter().map(|folder| (folder.path.as_str(), folder)).collect()
        }
        let (old, new) = (by_path(self.old), by_path(self.new));
        let ignored: HashSet<String> = self
            .old
            .folders
            .iter()
            .flat_map(|it| it.names.ignored.iter().map(|name| it.join(name)))
            .collect();
        for folder in &self.old.folders {
            match new.get(folder.path.as_str()) {
                Some(same) if Arc::ptr_eq(folder, same) => {}
                Some(now) => self.both(folder, now, &ignored),
                None => {
                    self.gone(folder);
                }
            }
        }
        for folder in &self.new.folders {
            if !old.contains_key(folder.path.as_str()) {
                self.came(folder, &ignored);
            }
        }
    }

    fn both(&mut self, old: &FolderEntry, new: &FolderEntry, ignored: &HashSet<String>) {
        if old.stat.mode != new.stat.mode && !old.path.is_empty() {
            let sides = (Some(folder(&old.stat)), Some(folder(&new.stat)));
            self.changes.insert(old.path.clone(), sides);
        }
        for file in &old.files {
            let path = old.join(&file.name);
            match new.file(&file.name) {
                Some(now)
                    if now.stored == file.stored
                        && now.stat.mode == file.stat.mode
                        && now.stat.shape == file.stat.shape
                        && !is_other(file, now) => {}
                Some(now) => self.changed(path, Some(file), Some(now)),
                None => self.lost(path, file),
            }
        }
        for file in new.files.iter().filter(|file| old.file(&file.name).is_none()) {
            self.new_file(new.join(&file.name), file, ignored);
        }
    }

    fn gone(&mut self, old: &FolderEntry) {
        if lstat(self.root, &old.path).is_none_or(|now| now.shape != FileKind::Folder) {
            self.before(old.path.clone(), folder(&old.stat));
        }
        for file in &old.files {
            self.lost(old.join(&file.name), file);
        }
    }

    fn came(&mut self, new: &FolderEntry, ignored: &HashSet<String>) {
        match was_ignored(&new.path, ignored) {
            Some(place) => self.gap(place, "git ignored it before"),
            None => self.after(new.path.clone(), folder(&new.stat)),
        }
        for file in &new.files {
            self.new_file(new.join(&file.name), file, ignored);
        }
    }

    /// A file that is not listed any more: it is gone, or git ignores it now.
    fn lost(&mut self, path: String, file: &FileEntry) {
        let now = lstat(self.root, &path);
        match now.filter(|now| matches!(now.shape, FileKind::File | FileKind::Link)) {
            Some(now) if now == file.stat => {}
            Some(_) => self.gap(&path, "git ignores it now"),
            None => self.changed(path, Some(file), None),
        }
    }

    fn new_file(&mut self, path: String, file: &FileEntry, ignored: &HashSet<String>) {
        match was_ignored(&path, ignored) {
            Some(place) => self.gap(place, "git ignored it before"),
            None => self.changed(path, None, Some(file)),
        }
    }

    fn changed(&mut self, path: String, before: Option<&FileEntry>, after: Option<&FileEntry>) {
        let unkept = [before, after].into_iter().flatten().find_map(|file| match file.stored {
            Stored::Large => Some(format!("longer than {} MiB", FILE_LIMIT >> 20)),
            Stored::Unreadable => Some("it cannot be read".to_owned()),
            Stored::Pack(_) | Stored::Object(_) => None,
        });
        if let Some(reason) = unkept {
            self.gap(&path, &reason);
            return;
        }
        if let Some(file) = before {
            self.before(path.clone(), content(file, self.old));
        }
        if let Some(file) = after {
            self.after(path, content(file, self.new));
        }
    }

    /// A file may have taken the place of a folder, which is then one change.
    fn before(&mut self, path: String, content: FileContent) {
        self.changes.entry(path).or_default().0 = Some(content);
    }

    fn after(&mut self, path: String, content: FileContent) {
        self.changes.entry(path).or_default().1 = Some(content);
    }

    fn gap(&mut self, path: &str, reason: &str) {
        let (paths, _) =
            self.gaps.entry(path.to_owned()).or_insert_with(|| (Some(0), reason.to_owned()));
        *paths = paths.map(|paths| paths + 1);
    }
}

/// What is at a path, unless a link is in the place of a folder around it.
fn lstat(root: &Path, path: &str) -> Option<Stat> {
    let place = ConfinedPath::find(root, Path::new(path)).ok()?;
    let is_direct = place.real(root).ok().as_deref() == Some(Path::new(path));
    place.stat().ok().filter(|_| is_direct).map(|found| Stat::of(&found))
}

/// True if two files whose content is not kept are not the same.
fn is_other(old: &FileEntry, new: &FileEntry) -> bool {
    matches!(new.stored, Stored::Large | Stored::Unreadable) && old.stat != new.stat
}

/// What git ignored when the first snapshot was taken and that is, or is around, a path.
fn was_ignored<'a>(path: &'a str, ignored: &HashSet<String>) -> Option<&'a str> {
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    ends.chain([path]).find(|path| ignored.contains(*path))
}

fn content(file: &FileEntry, index: &Snapshot) -> FileContent {
    let body = match &file.stored {
        Stored::Pack(place) => Some(BlobBody::File(FileRange {
            file: index.pack.clone(),
            offset: place.offset,
            length: place.length,
        })),
        Stored::Object(oid) => git_objects::blob(oid).map(BlobBody::Hash),
        Stored::Large | Stored::Unreadable => None,
    };
    let mode = (file.stat.shape == FileKind::File).then_some(file.stat.mode);
    let size = match &file.stored {
        Stored::Pack(place) => place.length,
        Stored::Object(_) | Stored::Large | Stored::Unreadable => file.stat.size,
    };
    FileContent { body, size, mode, shape: file.stat.shape }
}

fn folder(stat: &Stat) -> FileContent {
    FileContent { body: None, size: 0, mode: Some(stat.mode), shape: FileKind::Folder }
}
