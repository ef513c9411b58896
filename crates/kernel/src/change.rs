//! What became of files: recorded with every call, so that a turn's changes can be shown as one and
//! undone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::BlobId;

/// The most changes that an event lists one by one.
pub const LISTED_CHANGES_LIMIT: usize = 100;

/// The changes of a call beyond the first [`LISTED_CHANGES_LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlistedChanges {
    /// How many there are.
    pub count: u64,
    /// A JSON array of [`FileChange`]; nothing if it could not be kept. Like the content of changed
    /// files it is kept only while there is room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobId>,
}

/// What became of one file. A file that moved is two of these: gone here, new there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Where it is, from the workspace on, with `/` between folders.
    pub path: String,
    /// What it was; nothing if it was not there.
    pub before: Option<FileVersion>,
    /// What it is; nothing if it is gone.
    pub after: Option<FileVersion>,
}

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// The content; nothing if it was not kept, or if a thing of this shape has none.
    pub blob: Option<BlobId>,
    /// The length in bytes.
    pub size: u64,
    /// The permissions, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// What it is; the content of a link is the path that it leads to.
    #[serde(default, skip_serializing_if = "FileKind::is_file")]
    pub shape: FileKind,
}

/// What there can be at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    #[default]
    File,
    /// A symbolic link.
    Link,
    /// A folder, without what is in it.
    Folder,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Something else that is neither read nor written like a file, such as a device.
    Other,
}

impl FileKind {
    /// Whether there is something in it that can be kept.
    pub fn has_content(self) -> bool {
        matches!(self, Self::File | Self::Link)
    }

    fn is_file(&self) -> bool {
        *self == Self::File
    }
}

/// Something that happened to files, or may have, and is not recorded: it cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnrecordedChange {
    /// Where, from the workspace on, that and all below; empty for the whole workspace.
    pub path: String,
    /// How many paths were seen to have changed; nothing if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<u64>,
    /// Why, for people.
    pub reason: String,
}

/// What several gaps come to: one for each place and reason, sorted by place. Calls may have changed
/// the same paths, so of two numbers the larger counts.
pub fn merge_unrecorded<'a>(
    all: impl IntoIterator<Item = &'a UnrecordedChange>,
) -> Vec<UnrecordedChange> {
    let mut places: BTreeMap<(&str, &str), Option<u64>> = BTreeMap::new();
    for gap in all {
        let paths = places.entry((&gap.path, &gap.reason)).or_default();
        *paths = gap.paths.max(*paths);
    }
    let one = |((path, reason), paths): ((&str, &str), Option<u64>)| UnrecordedChange {
        path: path.to_owned(),
        paths,
        reason: reason.to_owned(),
    };
    places.into_iter().map(one).collect()
}

/// What several changes come to, file by file, sorted by path. What was put back is left out.
pub fn net_changes<'a>(changes: impl IntoIterator<Item = &'a FileChange>) -> Vec<FileChange> {
    let mut files: BTreeMap<&str, FileChange> = BTreeMap::new();
    for change in changes {
        files
            .entry(&change.path)
            .and_modify(|sum| sum.after.clone_from(&change.after))
            .or_insert_with(|| change.clone());
    }
    files.into_values().filter(|sum| sum.before != sum.after || sum.is_unknown()).collect()
}

/// What several changes come to, as far as each went on from where the one before it ended. A file that
/// somebody else changed in between stands there several times, in order.
pub fn consecutive_changes<'a>(
    changes: impl IntoIterator<Item = &'a FileChange>,
) -> Vec<FileChange> {
    let mut files: BTreeMap<&str, Vec<FileChange>> = BTreeMap::new();
    for change in changes {
        let runs = files.entry(&change.path).or_default();
        match runs.last_mut() {
            Some(last) if last.goes_on_with(change) => last.after.clone_from(&change.after),
            Some(_) | None => runs.push(change.clone()),
        }
    }
    let runs = files.into_values().flatten();
    runs.filter(|run| run.before != run.after || run.is_unknown()).collect()
}

/// The paths of changes.
pub fn changed_paths(changes: &[FileChange]) -> Vec<&str> {
    changes.iter().map(|change| change.path.as_str()).collect()
}

impl FileChange {
    /// Whether a change began with what this one left, or with what it had found: then somebody
    /// has turned it back already.
    fn goes_on_with(&self, next: &Self) -> bool {
        let found = next.before.as_ref();
        is_alike(self.after.as_ref(), found) || is_alike(self.before.as_ref(), found)
    }

    /// Whether nobody can say if it is the same, because what was in it is not kept.
    fn is_unknown(&self) -> bool {
        let unknown = |version: &FileVersion| version.blob.is_none() && version.shape.has_content();
        self.before.as_ref().is_some_and(unknown)
    }
}

/// Whether nothing tells one from the other.
fn is_alike(one: Option<&FileVersion>, other: Option<&FileVersion>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };
    fn agree<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
        one.zip(other).is_none_or(|(one, other)| one == other)
    }
    let size = !one.shape.is_file() || one.size == other.size;
    one.shape == other.shape
        && size
        && agree(one.mode.as_ref(), other.mode.as_ref())
        && agree(one.blob.as_ref(), other.blob.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(name: &str) -> Option<FileVersion> {
        let blob = BlobId::parse(name);
        blob.map(|blob| FileVersion {
            blob: Some(blob),
            size: 1,
            mode: None,
            shape: FileKind::File,
        })
    }

    #[track_caller]
    fn check(changes: &[(&str, &str, &str)], expected: &[(&str, &str, &str)]) {
        let change = |(path, before, after): &(&str, &str, &str)| FileChange {
            path: (*path).into(),
            before: version(before),
            after: version(after),
        };
        let changes: Vec<_> = changes.iter().map(change).collect();
        assert_eq!(net_changes(&changes), expected.iter().map(change).collect::<Vec<_>>());
    }

    #[test]
    fn changes_of_a_file_add_up() {
        check(
            &[("b", "1", "2"), ("a", "", "1"), ("b", "2", "3")],
            &[("a", "", "1"), ("b", "1", "3")],
        );
    }

    #[test]
    fn what_somebody_else_changed_in_between_stands_out() {
        let change = |(path, before, after): (&str, &str, &str)| FileChange {
            path: path.into(),
            before: version(before),
            after: version(after),
        };
        let all = [
            ("a", "1", "2"),
            ("b", "1", "2"),
            ("c", "1", "2"),
            ("d", "1", "2"),
            ("a", "2", "3"),
            ("b", "9", "3"),
            ("c", "1", "3"),
            ("d", "2", "1"),
            ("d", "9", "3"),
        ];
        let expected =
            [("a", "1", "3"), ("b", "1", "2"), ("b", "9", "3"), ("c", "1", "3"), ("d", "9", "3")];
        assert_eq!(consecutive_changes(&all.map(change)), expected.map(change));
    }

    #[test]
    fn what_was_not_kept_is_another_if_its_length_is() {
        let large =
            |size| Some(FileVersion { blob: None, size, mode: None, shape: FileKind::File });
        let change = |before, after| FileChange { path: "large".into(), before, after };
        let same = [change(version("1"), large(5)), change(large(5), version("2"))];
        assert_eq!(consecutive_changes(&same), [change(version("1"), version("2"))]);
        let other = [change(version("1"), large(5)), change(large(6), version("2"))];
        assert_eq!(consecutive_changes(&other), other);
    }

    #[test]
    fn what_was_not_kept_may_have_changed() {
        let large =
            || Some(FileVersion { blob: None, size: 1 << 30, mode: None, shape: FileKind::File });
        let change = FileChange { path: "large".into(), before: large(), after: large() };
        assert_eq!(net_changes([&change]), [change]);
    }

    #[test]
    fn what_is_put_back_is_no_change() {
        check(&[("a", "1", "2"), ("a", "2", "1"), ("b", "", "1"), ("b", "1", "")], &[]);
    }

    #[test]
    fn gaps_are_told_once() {
        let gap = |path: &str, paths, reason: &str| UnrecordedChange {
            path: path.into(),
            paths,
            reason: reason.into(),
        };
        let all = [
            gap("b", Some(2), "x"),
            gap("b", Some(7), "x"),
            gap("b", None, "x"),
            gap("", None, "y"),
        ];
        assert_eq!(merge_unrecorded(&all), [gap("", None, "y"), gap("b", Some(7), "x")]);
    }
}
