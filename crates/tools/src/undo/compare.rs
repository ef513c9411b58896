//! The changes between two snapshots.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::change::{FileKind, UnrecordedChange};
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, FileRange};

use super::pack::Extract;
use super::snapshot::{Content, Entry, Snapshot, Timestamp};
use super::{FILE_LIMIT, Record, git_objects, uncovered};

/// Unrecorded changes by path: how many paths there changed, if known, and why they are not recorded.
pub(super) type Gaps = BTreeMap<String, (Option<u64>, String)>;

/// The changes between snapshots, the first of which was taken at `since`.
pub(super) fn compare(root: &Path, old: &Snapshot, new: &Snapshot, since: Timestamp) -> Record {
    let (mut changes, mut gaps) = (Vec::new(), Gaps::new());
    let [ignored_before, ignored_now] = [old, new].map(|it| it.ignored().collect());
    for (path, sides) in differences(old, new) {
        let gap = match sides {
            [Some(before), Some(after)] if is_same(before, after) => continue,
            // The file is there, in one of the snapshots as something that git ignores.
            [Some(_), None] if let Some(place) = covering(&path, &ignored_now) => {
                Some((place, "git ignores it now".to_owned()))
            }
            [None, Some(_)] if let Some(place) = covering(&path, &ignored_before) => {
                Some((place, "git ignored it before".to_owned()))
            }
            _ => sides.iter().flatten().find_map(|it| not_stored(it)).map(|why| (&*path, why)),
        };
        if let Some((place, why)) = gap {
            let (paths, _) = gaps.entry(place.to_owned()).or_insert((Some(0), why));
            *paths = paths.map(|paths| paths + 1);
            continue;
        }
        let [before, after] = [(sides[0], old), (sides[1], new)]
            .map(|(side, snapshot)| side.map(|entry| content(entry, snapshot)));
        changes.push(ChangedFile { path, before, after });
    }
    uncovered::add(root, [old, new], since, &mut gaps);
    let gap = |(path, (paths, reason))| UnrecordedChange { path, paths, reason };
    Record { changes, unrecorded: gaps.into_iter().map(gap).collect() }
}

/// The entries, by path, of the folders that the snapshots do not share.
fn differences<'a>(
    old: &'a Snapshot,
    new: &'a Snapshot,
) -> BTreeMap<String, [Option<&'a Entry>; 2]> {
    let mut entries: BTreeMap<_, [_; 2]> = BTreeMap::new();
    for (side, [one, other]) in [[old, new], [new, old]].into_iter().enumerate() {
        let shared: HashSet<_> = other.folders.iter().map(Arc::as_ptr).collect();
        for folder in one.folders.iter().filter(|it| !shared.contains(&Arc::as_ptr(it))) {
            for entry in &folder.entries {
                entries.entry(folder.join(&entry.name)).or_default()[side] = Some(entry);
            }
        }
    }
    entries
}

/// The ignored path that is, or contains, this one.
fn covering<'a>(path: &'a str, ignored: &HashSet<String>) -> Option<&'a str> {
    let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
    parents.chain([path]).find(|path| ignored.contains(*path))
}

fn is_same(one: &Entry, other: &Entry) -> bool {
    one.content == other.content
        && one.stat.mode == other.stat.mode
        && one.stat.kind == other.stat.kind
        && (not_stored(other).is_none() || one.stat == other.stat)
}

/// Why the content of an entry is not stored.
fn not_stored(entry: &Entry) -> Option<String> {
    match entry.content {
        Content::Large => Some(format!("longer than {} MiB", FILE_LIMIT >> 20)),
        Content::Unreadable => Some("it cannot be read".to_owned()),
        Content::Folder | Content::Pack(_) | Content::Git(_) => None,
    }
}

fn content(Entry { stat, content, .. }: &Entry, snapshot: &Snapshot) -> FileContent {
    let (body, size) = match content {
        Content::Pack(Extract { offset, length, .. }) => {
            let (file, offset, length) = (snapshot.pack.clone(), *offset, *length);
            (Some(BlobBody::File(FileRange { file, offset, length })), length)
        }
        Content::Git(object) => (git_objects::blob(object).map(BlobBody::Hash), stat.size),
        Content::Folder => (None, 0),
        Content::Large | Content::Unreadable => (None, stat.size),
    };
    let mode = (stat.kind != FileKind::Link).then_some(stat.mode);
    FileContent { body, size, mode, shape: stat.kind }
}
