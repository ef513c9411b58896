//! File changes as editors show them: the whole text before and after.
//!
//! An approval request carries a unified diff. The new text is computed from the diff and the current file;
//! if they do not match, only the lines around the change are shown.

use std::path::Path;

use quintet_kernel::port::{BlobBody, ChangedFile, FileContent};
use serde_json::{Value, json};

/// The longest text of one side, in bytes.
pub(super) const TEXT_LIMIT: usize = 256 * 1024;
/// The most files of one call.
pub(super) const FILES_LIMIT: usize = 50;
const NO_NEWLINE: &str = "\\ No newline at end of file";

/// The changes of one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileDiff<'a> {
    /// The path, relative to the workspace.
    pub(super) path: &'a str,
    /// True if the file is new.
    is_new: bool,
    hunks: Vec<Hunk>,
}

/// A range of lines and its replacement.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// The first line of the range in the current file, counted from 1.
    first: usize,
    old: String,
    new: String,
    /// Lines of each side that are still missing.
    left: [usize; 2],
    /// The sides that the last line belongs to.
    last: [bool; 2],
}

/// Parses a unified diff; no files if the text is not one.
pub(super) fn parse(text: &str) -> Vec<FileDiff<'_>> {
    let (mut files, mut old) = (Vec::<FileDiff<'_>>::new(), None);
    for line in text.split_inclusive('\n') {
        let plain = line.trim_end_matches('\n');
        if let Some(hunk) = files.last_mut().and_then(|file| file.hunks.last_mut())
            && hunk.add_line(line)
        {
            continue;
        }
        if let Some(path) = plain.strip_prefix("--- ") {
            old = Some(path);
        } else if let (Some(path), Some(before)) = (plain.strip_prefix("+++ "), old) {
            let is_new = before == "/dev/null";
            let path = if path == "/dev/null" { before } else { path };
            let path = path.get(2..).unwrap_or(path);
            files.push(FileDiff { path, is_new, hunks: Vec::new() });
            old = None;
        } else if let (Some(hunk), Some(file)) = (Hunk::parse_header(plain), files.last_mut()) {
            file.hunks.push(hunk);
        }
    }
    files
}

impl Hunk {
    /// Parses `@@ -1,2 +3,4 @@`.
    fn parse_header(line: &str) -> Option<Self> {
        let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let range = |text: &str| -> Option<[usize; 2]> {
            let (first, count) = text.split_once(',').unwrap_or((text, "1"));
            Some([first.parse().ok()?, count.parse().ok()?])
        };
        let ([first, removed], [_, added]) = (range(old)?, range(new)?);
        // Where nothing is removed the number is that of the line before.
        let first = if removed == 0 { first + 1 } else { first };
        Some(Self { first, left: [removed, added], ..Self::default() })
    }

    /// Adds a line to the hunk; false if the line does not belong to it.
    fn add_line(&mut self, line: &str) -> bool {
        if line.trim_end_matches('\n') == NO_NEWLINE {
            for (side, text) in self.last.into_iter().zip([&mut self.old, &mut self.new]) {
                text.truncate(text.len() - usize::from(side && text.ends_with('\n')));
            }
            return true;
        }
        let last = match line.as_bytes().first() {
            Some(b' ') => [true, true],
            Some(b'-') => [true, false],
            Some(b'+') => [false, true],
            Some(_) | None => return false,
        };
        if last.iter().zip(self.left).any(|(side, left)| *side && left == 0) {
            return false;
        }
        let sides = last.into_iter().zip([&mut self.old, &mut self.new]).zip(&mut self.left);
        for ((_, text), left) in sides.filter(|((side, _), _)| *side) {
            text.push_str(&line[1..]);
            *left -= 1;
        }
        self.last = last;
        true
    }
}

impl FileDiff<'_> {
    /// False if lines are missing, because the diff was shortened.
    pub(super) fn is_whole(&self) -> bool {
        self.hunks.iter().all(|hunk| hunk.left == [0, 0])
    }

    /// The text before and after, given the current text of the file.
    pub(super) fn texts(&self, current: Option<&str>) -> (Option<String>, String) {
        let part = |side: fn(&Hunk) -> &str| self.hunks.iter().map(side).collect::<String>();
        if self.is_new {
            return (None, part(|hunk| &hunk.new));
        }
        match current.and_then(|text| Some((text, self.apply(text)?))) {
            Some((text, after)) => (Some(text.to_owned()), after),
            None => (Some(part(|hunk| &hunk.old)), part(|hunk| &hunk.new)),
        }
    }

    /// Applies the hunks to a text; `None` if they do not match it.
    fn apply(&self, text: &str) -> Option<String> {
        let starts: Vec<usize> = std::iter::once(0)
            .chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1))
            .collect();
        let (mut after, mut done) = (String::with_capacity(text.len()), 0);
        for hunk in &self.hunks {
            let at = *starts.get(hunk.first.saturating_sub(1))?;
            after.push_str(text.get(done..at)?);
            let rest = text.get(at..)?;
            rest.strip_prefix(hunk.old.as_str())?;
            after.push_str(&hunk.new);
            done = at + hunk.old.len();
        }
        after.push_str(text.get(done..)?);
        Some(after)
    }
}

/// Encodes a change of a file. `path` is relative to the workspace.
pub(super) fn content(workspace: &Path, path: &str, old: Option<&str>, new: &str) -> Value {
    let path = workspace.join(path);
    json!({ "type": "diff", "path": path.to_string_lossy(), "oldText": old, "newText": new })
}

/// Encodes the changes of a call; binary and long files are left out.
pub(super) fn changes_content(workspace: &Path, changes: &[ChangedFile]) -> Vec<Value> {
    let one = |change: &ChangedFile| {
        let (old, new) = (text(change.before.as_ref())?, text(change.after.as_ref())?);
        if old.is_none() && new.is_none() {
            return None;
        }
        Some(content(workspace, &change.path, old, new.unwrap_or_default()))
    };
    changes.iter().filter_map(one).take(FILES_LIMIT).collect()
}

/// The text of a version: `Some(None)` if there was no file, `None` if the file cannot be shown.
#[expect(clippy::option_option, reason = "no file and no text are different answers")]
fn text(content: Option<&FileContent>) -> Option<Option<&str>> {
    let Some(content) = content else { return Some(None) };
    match &content.body {
        Some(BlobBody::Bytes(bytes)) if bytes.len() <= TEXT_LIMIT => {
            std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).map(Some)
        }
        Some(BlobBody::Bytes(_) | BlobBody::File(_) | BlobBody::Hash(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDIT: &str = "--- a/x.txt\n+++ b/x.txt\n@@ -2,2 +2,3 @@\n two\n-three\n+3\n+4\n\\ No newline at end of file\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";

    #[track_caller]
    fn check(diff: &str, current: Option<&str>, expected: &[(&str, Option<&str>, &str)]) {
        let files = parse(diff);
        let actual = files.iter().map(|file| (file.path, file.texts(current)));
        let actual: Vec<_> = actual.map(|(path, (old, new))| (path, old, new)).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, old, new)| (*path, old.map(str::to_owned), (*new).to_owned()))
            .collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn a_change_is_applied_to_the_whole_file() {
        let current = "one\ntwo\nthree\n";
        check(
            &EDIT[..EDIT.find("--- a/y").unwrap()],
            Some(current),
            &[("x.txt", Some(current), "one\ntwo\n3\n4")],
        );
    }

    #[test]
    fn only_the_hunks_are_shown_if_the_file_does_not_match() {
        check(
            EDIT,
            None,
            &[("x.txt", Some("two\nthree\n"), "two\n3\n4"), ("y", Some("gone\n"), "")],
        );
    }

    #[test]
    fn a_diff_that_was_shortened_is_not_whole() {
        assert!(parse(EDIT).iter().all(FileDiff::is_whole));
        let cut = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n[90 bytes left out]\n+b\n";
        assert!(!parse(cut)[0].is_whole());
    }

    #[test]
    fn a_new_file_has_no_text_before() {
        let diff = "--- /dev/null\n+++ b/new/f\n@@ -0,0 +1,2 @@\n+-- a\n++++ b\n";
        check(diff, Some("x"), &[("new/f", None, "-- a\n+++ b\n")]);
        check("$ ls\nin /tmp\n", None, &[]);
        check("@@ -1 +1 @@\n-x\n@@ bad", None, &[]);
    }
}
