//! What happened to the files of a workspace between two snapshots.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::change::{FileKind, UnrecordedChange};
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, FileRange};

use super::pack::Extract;
use super::snapshot::{FileEntry, Moment, Snapshot, Stat, Stored};
use super::{FILE_LIMIT, Record, git_objects, uncovered};
use crate::confined_fs::ConfinedPath;

/// What is not recorded, by path: how many paths changed there, if that is known, and why.
pub(super) type Gaps = BTreeMap<String, (Option<u64>, String)>;

/// What a snapshot has at a path: a folder or, with its content, a file or link.
#[derive(Clone, Copy)]
struct Entry<'a> {
    stat: &'a Stat,
    stored: Option<&'a Stored>,
}

/// Finds out what happened.
pub(super) fn compare(root: &Path, old: &Snapshot, new: &Snapshot, since: Moment) -> Record {
    let (mut changes, mut gaps) = (Vec::new(), Gaps::new());
    let [ignored, ignored_now] = [old, new].map(|it| it.ignored().collect::<HashSet<_>>());
    let mut entries: BTreeMap<String, [Option<Entry<'_>>; 2]> = BTreeMap::new();
    for (side, [one, other]) in [[old, new], [new, old]].into_iter().enumerate() {
        for (path, entry) in different(one, other) {
            entries.entry(path).or_default()[side] = Some(entry);
        }
    }
    for (path, [before, after]) in entries {
        let verdict = match (before, after) {
            (Some(was), None) if covering(&path, &ignored_now).is_some() => {
                unlisted(was, lstat(root, &path), &path)
            }
            (None, Some(_)) if let Some(place) = covering(&path, &ignored) => {
                Verdict::Gap(place, "git ignored it before".to_owned())
            }
            (Some(before), Some(after)) if is_same(before, after) => Verdict::Same,
            (before, after) => {
                let unkept = [before, after].into_iter().flatten().find_map(unkept);
                unkept.map_or(Verdict::Changed, |why| Verdict::Gap(&path, why))
            }
        };
        match verdict {
            Verdict::Same => {}
            Verdict::Gap(place, why) => {
                let (paths, _) = gaps.entry(place.to_owned()).or_insert((Some(0), why));
                *paths = paths.map(|paths| paths + 1);
            }
            Verdict::Changed => {
                let before = before.map(|it| content(it, old));
                changes.push(ChangedFile { path, before, after: after.map(|it| content(it, new)) });
            }
        }
    }
    uncovered::add(root, [old, new], since, &mut gaps);
    let gap = |(path, (paths, reason))| UnrecordedChange { path, paths, reason };
    Record { changes, unrecorded: gaps.into_iter().map(gap).collect() }
}

/// What is in those folders of a snapshot that are not the very same in another one.
fn different<'a>(one: &'a Snapshot, other: &Snapshot) -> Vec<(String, Entry<'a>)> {
    let others: HashSet<_> = other.folders.iter().map(Arc::as_ptr).collect();
    let mut entries = Vec::new();
    for folder in one.folders.iter().filter(|it| !others.contains(&Arc::as_ptr(it))) {
        if !folder.path.is_empty() {
            entries.push((folder.path.clone(), Entry { stat: &folder.stat, stored: None }));
        }
        let entry = |file: &'a Arc<FileEntry>| {
            (folder.join(&file.name), Entry { stat: &file.stat, stored: Some(&file.stored) })
        };
        entries.extend(folder.files.iter().map(entry));
    }
    entries
}

/// What to make of a path.
enum Verdict<'a> {
    Same,
    Changed,
    /// A place that is not recorded, and why.
    Gap(&'a str, String),
}

/// What became of something that is not listed any more and may be what git ignores now.
fn unlisted<'a>(was: Entry<'_>, now: Option<Stat>, path: &'a str) -> Verdict<'a> {
    match now {
        Some(now) if was.stored.is_none() && now.shape == FileKind::Folder => Verdict::Same,
        Some(now) if was.stored.is_some() && *was.stat == now => Verdict::Same,
        Some(now) if was.stored.is_some() && now.shape.has_content() => {
            Verdict::Gap(path, "git ignores it now".to_owned())
        }
        Some(_) | None => Verdict::Changed,
    }
}

/// What is at a path, unless a link is in the place of a folder around it.
fn lstat(root: &Path, path: &str) -> Option<Stat> {
    let place = ConfinedPath::find(root, Path::new(path)).ok()?;
    let is_direct = place.real(root).ok().as_deref() == Some(Path::new(path));
    place.stat().ok().filter(|_| is_direct).map(|found| Stat::of(&found))
}

/// What git ignores and that is, or is around, a path.
fn covering<'a>(path: &'a str, ignored: &HashSet<String>) -> Option<&'a str> {
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    ends.chain([path]).find(|path| ignored.contains(*path))
}

fn is_same(one: Entry<'_>, other: Entry<'_>) -> bool {
    one.stored == other.stored
        && one.stat.mode == other.stat.mode
        && one.stat.shape == other.stat.shape
        && (unkept(other).is_none() || one.stat == other.stat)
}

/// Why the content of a file is not kept.
fn unkept(entry: Entry<'_>) -> Option<String> {
    match entry.stored? {
        Stored::Large => Some(format!("longer than {} MiB", FILE_LIMIT >> 20)),
        Stored::Unreadable => Some("it cannot be read".to_owned()),
        Stored::Pack(_) | Stored::Object(_) => None,
    }
}

fn content(entry: Entry<'_>, snapshot: &Snapshot) -> FileContent {
    let Stat { size, mode, shape, .. } = *entry.stat;
    let (body, size) = match entry.stored {
        Some(Stored::Pack(Extract { offset, length, .. })) => {
            let (file, offset, length) = (snapshot.pack.clone(), *offset, *length);
            (Some(BlobBody::File(FileRange { file, offset, length })), length)
        }
        Some(Stored::Object(object)) => (git_objects::blob(object).map(BlobBody::Hash), size),
        Some(Stored::Large | Stored::Unreadable) => (None, size),
        None => (None, 0),
    };
    let mode = (shape != FileKind::Link).then_some(mode);
    FileContent { body, size, mode, shape }
}
