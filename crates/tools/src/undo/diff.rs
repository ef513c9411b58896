//! Changes of files as one unified diff, as git writes it.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent};
use tokio::time::Instant;

use crate::{change, show};

/// How long all of it may be worked at before the rest becomes coarse.
const DIFF_TIME_LIMIT: Duration = Duration::from_secs(5);

/// A file before and after; by two names if it moved.
#[derive(Clone, Copy, Debug)]
struct File<'a> {
    old_path: &'a Path,
    path: &'a Path,
    before: Option<&'a FileContent>,
    after: Option<&'a FileContent>,
}

/// All changes as one diff, sorted by path.
pub(super) fn diff(changes: &[ChangedFile]) -> String {
    let deadline = Instant::now() + DIFF_TIME_LIMIT;
    let paths: Vec<&Path> = changes.iter().map(|changed| Path::new(&changed.path)).collect();
    let files: Vec<_> = paths.iter().zip(changes).map(|(path, it)| File::of(path, it)).collect();
    let parents: HashSet<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let is_folder = |file: &File<'_>| file.sides().all(|side| side.shape == FileKind::Folder);
    let (folders, files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_folder);
    let mut shown = paired(&files);
    // A folder is seen by what is in it; git knows no others.
    shown.extend(folders.into_iter().filter(|it| !parents.contains(it.path)));
    shown.sort_unstable_by_key(|file| file.path);
    shown.iter().flat_map(File::halves).map(|file| file.diff(deadline)).collect()
}

/// What was deleted here and created there with the same content has moved.
fn paired<'a>(changes: &[File<'a>]) -> Vec<File<'a>> {
    let mut gone: HashMap<&BlobBody, Vec<&File<'a>>> = HashMap::new();
    for change in changes.iter().rev().filter(|change| change.after.is_none()) {
        if let Some(body) = text(change.before) {
            gone.entry(body).or_default().push(change);
        }
    }
    let (mut files, mut moved) = (Vec::new(), HashSet::new());
    for change in changes {
        let new = text(change.after).filter(|_| change.before.is_none());
        let from = new.and_then(|body| gone.get_mut(body)?.pop());
        moved.extend(from.map(|from| from.path));
        let from = from.unwrap_or(change);
        files.push(File { old_path: from.path, before: from.before, ..*change });
    }
    files.retain(|file| !(file.after.is_none() && moved.contains(file.path)));
    files
}

/// What is in a file by which it can be told from others.
fn text(content: Option<&FileContent>) -> Option<&BlobBody> {
    let file = content.filter(|content| content.shape == FileKind::File && content.size > 0)?;
    file.body.as_ref()
}

impl<'a> File<'a> {
    fn of(path: &'a Path, changed: &'a ChangedFile) -> Self {
        let (before, after) = (changed.before.as_ref(), changed.after.as_ref());
        Self { old_path: path, path, before, after }
    }

    /// A file that became a link, or the other way, is one that goes and another that comes.
    fn halves(&self) -> Vec<Self> {
        match (self.before, self.after) {
            (Some(old), Some(new)) if old.shape != new.shape => {
                vec![Self { after: None, ..*self }, Self { before: None, ..*self }]
            }
            _ => vec![*self],
        }
    }

    fn diff(&self, deadline: Instant) -> String {
        if !self.sides().all(|side| side.shape.has_content()) {
            let became = match (self.before, self.after) {
                (None, _) => "is new",
                (Some(_), None) => "is gone",
                (Some(_), Some(_)) => "has other permissions",
            };
            return format!("The folder {} {became}\n", quoted("", self.path));
        }
        let (a, b) = (quoted("a", self.old_path), quoted("b", self.path));
        let shown = format!("diff --git {a} {b}\n{}", self.modes());
        if self.old_path != self.path {
            let (from, to) = (quoted("", self.old_path), quoted("", self.path));
            return shown + &format!("similarity index 100%\nrename from {from}\nrename to {to}\n");
        }
        let (a, b) = (named(self.before, a), named(self.after, b));
        let is_kept = |side: &FileContent| !matches!(side.body, None | Some(BlobBody::Hash(_)));
        let bodies = [self.before, self.after].map(|side| side.map(|side| &side.body));
        shown
            + &match (bytes(self.before), bytes(self.after)) {
                (Some(old), Some(new)) if old == new => String::new(),
                (Some(old), Some(new)) if old.contains(&0) || new.contains(&0) => {
                    format!("Binary files {a} and {b} differ\n")
                }
                (Some(old), Some(new)) => change::hunks(old, new, [&whole(a), &whole(b)], deadline),
                _ if !self.sides().all(is_kept) => {
                    let path = quoted("", self.path);
                    format!("The content of {path} was not kept ({})\n", self.sizes())
                }
                _ if bodies[0] == bodies[1] => String::new(),
                _ => format!("Large files {a} and {b} differ ({})\n", self.sizes()),
            }
    }

    fn sides(&self) -> impl Iterator<Item = &'a FileContent> {
        [self.before, self.after].into_iter().flatten()
    }

    fn modes(&self) -> String {
        match (self.before.map(mode), self.after.map(mode)) {
            (None, Some(new)) => format!("new file mode {new:o}\n"),
            (Some(old), None) => format!("deleted file mode {old:o}\n"),
            (Some(old), Some(new)) if old != new => {
                format!("old mode {old:o}\nnew mode {new:o}\n")
            }
            (Some(_), Some(_)) | (None, None) => String::new(),
        }
    }

    fn sizes(&self) -> String {
        let size = |content: &FileContent| {
            show::count(usize::try_from(content.size).unwrap_or(usize::MAX), "byte")
        };
        match (self.before.map(size), self.after.map(size)) {
            (Some(old), Some(new)) => format!("{old} before, {new} after"),
            (Some(size), None) | (None, Some(size)) => size,
            (None, None) => String::new(),
        }
    }
}

fn named(content: Option<&FileContent>, name: String) -> String {
    if content.is_some() { name } else { "/dev/null".to_owned() }
}

/// A name above a diff; one with blanks has to be told from a date behind it.
fn whole(name: String) -> String {
    if name.contains(' ') { name + "\t" } else { name }
}

/// What is in a file, if it was kept; nothing is in one that is not there.
fn bytes(content: Option<&FileContent>) -> Option<&[u8]> {
    match content.map(|content| content.body.as_ref()) {
        None => Some(&[]),
        Some(Some(BlobBody::Bytes(bytes))) => Some(bytes),
        Some(Some(BlobBody::File(_) | BlobBody::Hash(_)) | None) => None,
    }
}

/// The mode as git has it.
fn mode(content: &FileContent) -> u32 {
    let is_link = content.shape == FileKind::Link;
    if is_link { 0o120_000 } else { 0o100_000 | content.mode.unwrap_or(0o644) }
}

/// A path as git writes it: in quotes where it would not be one word on one line.
fn quoted(side: &str, path: &Path) -> String {
    let path = Path::new(side).join(path);
    let text = path.to_string_lossy();
    let is_plain = |c: char| !(c.is_control() || c == '"' || c == '\\');
    if text.chars().all(is_plain) {
        return text.into_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        let _infallible = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            '\n' => write!(quoted, "\\n"),
            '\t' => write!(quoted, "\\t"),
            c if c.is_ascii_control() => write!(quoted, "\\{:03o}", u32::from(c)),
            c => write!(quoted, "{c}"),
        };
    }
    quoted + "\""
}

#[cfg(test)]
mod tests;
