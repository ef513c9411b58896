//! How changes of files look: as a unified diff, as git writes it.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent};
use similar::TextDiff;
use tokio::time::Instant;

use crate::show;

/// How long the changes of a turn may be worked at before the rest becomes coarse.
const TURN_TIME_LIMIT: Duration = Duration::from_secs(5);
/// How long the preview of a change may be worked at before it becomes coarse.
const PREVIEW_TIME_LIMIT: Duration = Duration::from_millis(500);

/// A file before and after; by two names if it moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileDiff<'a> {
    pub(crate) old_path: &'a Path,
    pub(crate) path: &'a Path,
    pub(crate) before: Option<&'a FileContent>,
    pub(crate) after: Option<&'a FileContent>,
}

/// All changes as one diff, sorted by path.
pub(crate) fn diff(changes: &[ChangedFile]) -> String {
    let deadline = Instant::now() + TURN_TIME_LIMIT;
    let paths: Vec<&Path> = changes.iter().map(|changed| Path::new(&changed.path)).collect();
    let files: Vec<_> =
        paths.iter().zip(changes).map(|(path, it)| FileDiff::of(path, it)).collect();
    let parents: HashSet<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let is_folder = |file: &FileDiff<'_>| file.sides().all(|side| side.shape == FileKind::Folder);
    let (folders, files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_folder);
    let mut shown = paired(&files);
    // A folder is seen by what is in it; git knows no others.
    shown.extend(folders.into_iter().filter(|it| !parents.contains(it.path)));
    shown.sort_unstable_by_key(|file| file.path);
    shown.iter().flat_map(FileDiff::halves).map(|file| file.diff(deadline)).collect()
}

/// What was deleted here and created there with the same content has moved.
fn paired<'a>(changes: &[FileDiff<'a>]) -> Vec<FileDiff<'a>> {
    let mut gone: HashMap<&BlobBody, Vec<&FileDiff<'a>>> = HashMap::new();
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
        files.push(FileDiff { old_path: from.path, before: from.before, ..*change });
    }
    files.retain(|file| !(file.after.is_none() && moved.contains(file.path)));
    files
}

/// What is in a file by which it can be told from others.
fn text(content: Option<&FileContent>) -> Option<&BlobBody> {
    let file = content.filter(|content| content.shape == FileKind::File && content.size > 0)?;
    file.body.as_ref()
}

impl<'a> FileDiff<'a> {
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

    /// A change that is still to be made. What git writes above the names of a file is left out.
    pub(crate) fn preview(&self) -> String {
        let mut body = self.body(Instant::now() + PREVIEW_TIME_LIMIT);
        if body.is_empty() && self.before.is_none() {
            let [a, b] = self.names();
            body = format!("--- {a}\n+++ {b}\n");
        }
        self.renamed() + &body
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
        let rest = match self.renamed() {
            unmoved if unmoved.is_empty() => self.body(deadline),
            renamed => format!("similarity index 100%\n{renamed}"),
        };
        format!("diff --git {a} {b}\n{}{rest}", self.modes())
    }

    /// Where it was and is; nothing if it did not move.
    fn renamed(&self) -> String {
        if self.old_path == self.path {
            return String::new();
        }
        format!("rename from {}\nrename to {}\n", quoted("", self.old_path), quoted("", self.path))
    }

    /// What is different in it; nothing if it is the same.
    fn body(&self, deadline: Instant) -> String {
        let [a, b] = self.names();
        let is_kept = |side: &FileContent| !matches!(side.body, None | Some(BlobBody::Hash(_)));
        match (bytes(self.before), bytes(self.after)) {
            (Some(old), Some(new)) if old == new => String::new(),
            (Some(old), Some(new)) if old.contains(&0) || new.contains(&0) => {
                format!("Binary files {a} and {b} differ\n")
            }
            (Some(old), Some(new)) => hunks(old, new, [&whole(a), &whole(b)], deadline),
            _ if !self.sides().all(is_kept) => {
                let path = quoted("", self.path);
                format!("The content of {path} was not kept ({})\n", self.sizes())
            }
            _ if self.before.map(|it| &it.body) == self.after.map(|it| &it.body) => String::new(),
            _ => format!("Large files {a} and {b} differ ({})\n", self.sizes()),
        }
    }

    /// The names before and after.
    fn names(&self) -> [String; 2] {
        let sides = [("a", self.old_path, self.before), ("b", self.path, self.after)];
        sides.map(
            |(side, path, content)| {
                if content.is_some() { quoted(side, path) } else { "/dev/null".to_owned() }
            },
        )
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

/// The lines of a unified diff, with these names above them.
fn hunks(old: &[u8], new: &[u8], names: [&str; 2], deadline: Instant) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure().deadline(deadline.into_std()).diff_lines(&*old, &*new);
    diff.unified_diff().header(names[0], names[1]).to_string()
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
