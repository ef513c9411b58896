//! File changes. They are recorded with every call, so that the changes of a turn can be shown
//! together and reverted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::BlobId;

/// Maximum number of changes that an event lists one by one.
pub const LISTED_CHANGES_LIMIT: usize = 100;

/// The changes of a call beyond the first [`LISTED_CHANGES_LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlistedChanges {
    /// Number of unlisted changes.
    pub count: u64,
    /// A JSON array of [`FileChange`], or `None` if it could not be stored. Like the
    /// content of changed files, the blob is deleted when the undo store is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobId>,
}

/// The change of one file. A moved file is two changes: one deletion and one creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The path relative to the workspace, with `/` between folders.
    pub path: String,
    /// The file before the change; `None` if it did not exist.
    pub before: Option<FileVersion>,
    /// The file after the change; `None` if it was deleted.
    pub after: Option<FileVersion>,
}

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// The content; `None` if it was not stored or if this kind of file has none.
    pub blob: Option<BlobId>,
    /// The length in bytes.
    pub size: u64,
    /// The permission bits, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// The kind of file. The content of a symbolic link is its target path.
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
    /// A folder, without its content.
    Folder,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Anything else that is neither read nor written like a file, such as a device.
    Other,
}

impl FileKind {
    /// True if this kind of file has content that can be stored.
    pub fn has_content(self) -> bool {
        matches!(self, Self::File | Self::Link)
    }

    fn is_file(&self) -> bool {
        *self == Self::File
    }
}

/// A file change that happened, or may have happened, and was not recorded. It cannot be
/// reverted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnrecordedChange {
    /// The affected folder or file relative to the workspace; empty for the whole
    /// workspace.
    pub path: String,
    /// Number of paths that were seen to change; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<u64>,
    /// Why the change was not recorded, for people.
    pub reason: String,
}

/// Merges unrecorded changes: one for each path and reason, sorted by path. Calls may have
/// changed the same paths, so the larger of two numbers counts.
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

/// The combined effect of changes, one per file, sorted by path. Files that are back in their
/// first state are left out.
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

/// Joins each change with the one before it if it continues from there. A file that another program
/// changed in between is listed several times, in order.
pub fn consecutive_changes<'a>(
    changes: impl IntoIterator<Item = &'a FileChange>,
) -> Vec<FileChange> {
    let mut files: BTreeMap<&str, Vec<FileChange>> = BTreeMap::new();
    for change in changes {
        let runs = files.entry(&change.path).or_default();
        match runs.last_mut() {
            Some(last) if last.is_continued_by(change) => last.after.clone_from(&change.after),
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
    /// True if `next` started from the state that this change left or from the state before
    /// it (the change was undone in between).
    fn is_continued_by(&self, next: &Self) -> bool {
        let found = next.before.as_ref();
        is_alike(self.after.as_ref(), found) || is_alike(self.before.as_ref(), found)
    }

    /// True if the content before the change is not stored, so that equality cannot be
    /// decided.
    fn is_unknown(&self) -> bool {
        let unknown = |version: &FileVersion| version.blob.is_none() && version.shape.has_content();
        self.before.as_ref().is_some_and(unknown)
    }
}

/// True if no known attribute differs.
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
    fn a_change_by_another_program_is_kept_apart() {
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
    fn unstored_content_differs_if_its_length_differs() {
        let large =
            |size| Some(FileVersion { blob: None, size, mode: None, shape: FileKind::File });
        let change = |before, after| FileChange { path: "large".into(), before, after };
        let same = [change(version("1"), large(5)), change(large(5), version("2"))];
        assert_eq!(consecutive_changes(&same), [change(version("1"), version("2"))]);
        let other = [change(version("1"), large(5)), change(large(6), version("2"))];
        assert_eq!(consecutive_changes(&other), other);
    }

    #[test]
    fn unstored_content_may_have_changed() {
        let large =
            || Some(FileVersion { blob: None, size: 1 << 30, mode: None, shape: FileKind::File });
        let change = FileChange { path: "large".into(), before: large(), after: large() };
        assert_eq!(net_changes([&change]), [change]);
    }

    #[test]
    fn restored_content_is_no_change() {
        check(&[("a", "1", "2"), ("a", "2", "1"), ("b", "", "1"), ("b", "1", "")], &[]);
    }

    #[test]
    fn unrecorded_changes_are_merged() {
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
