//! Changes of files as one unified diff, as git writes it.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::time::Duration;

use quintet_kernel::change::Shape;
use quintet_kernel::port::{Changed, Content};
use tokio::time::Instant;

use crate::{change, show};

/// How long all of it may be worked at before the rest becomes coarse.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file before and after; by two names if it moved.
#[derive(Clone, Copy, Debug)]
struct File<'a> {
    old_path: &'a str,
    path: &'a str,
    before: Option<&'a Content>,
    after: Option<&'a Content>,
}

/// All changes as one diff, sorted by path.
pub(super) fn diff(changes: &[Changed]) -> String {
    let deadline = Instant::now() + PATIENCE;
    let mut files = paired(changes);
    files.sort_unstable_by_key(|file| file.path);
    files.iter().flat_map(File::halves).map(|file| file.diff(deadline)).collect()
}

/// What was deleted here and created there with the same content has moved.
fn paired(changes: &[Changed]) -> Vec<File<'_>> {
    let mut gone: HashMap<&[u8], Vec<&Changed>> = HashMap::new();
    for change in changes.iter().rev().filter(|change| change.after.is_none()) {
        if let Some(bytes) = text(change.before.as_ref()) {
            gone.entry(bytes).or_default().push(change);
        }
    }
    let (mut files, mut moved) = (Vec::new(), HashSet::new());
    for change in changes {
        let new = text(change.after.as_ref()).filter(|_| change.before.is_none());
        let from = new.and_then(|bytes| gone.get_mut(bytes)?.pop());
        let (old_path, before) =
            from.map_or((&change.path, &change.before), |from| (&from.path, &from.before));
        moved.extend(from.map(|from| from.path.as_str()));
        let (before, after) = (before.as_ref(), change.after.as_ref());
        files.push(File { old_path, path: &change.path, before, after });
    }
    files.retain(|file| !(file.after.is_none() && moved.contains(file.path)));
    files
}

/// What is in a file by which it can be told from others.
fn text(content: Option<&Content>) -> Option<&[u8]> {
    let file = content.filter(|content| content.shape == Shape::File)?;
    file.bytes.as_deref().filter(|bytes| !bytes.is_empty())
}

impl File<'_> {
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
        let (a, b) = (quoted("a", self.old_path), quoted("b", self.path));
        let mut shown = format!("diff --git {a} {b}\n{}", self.modes());
        if self.old_path != self.path {
            let (from, to) = (quoted("", self.old_path), quoted("", self.path));
            let _infallible =
                write!(shown, "similarity index 100%\nrename from {from}\nrename to {to}\n");
            return shown;
        }
        let (a, b) = (named(self.before, a), named(self.after, b));
        match (bytes(self.before), bytes(self.after)) {
            (Some(old), Some(new)) if old == new => shown,
            (Some(old), Some(new)) if is_binary(old) || is_binary(new) => {
                shown + &format!("Binary files {a} and {b} differ\n")
            }
            (Some(old), Some(new)) => {
                shown + &change::hunks(old, new, [&whole(a), &whole(b)], deadline)
            }
            _ => shown + &self.unkept(),
        }
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

    fn unkept(&self) -> String {
        let size = |content: &Content| {
            show::count(usize::try_from(content.size).unwrap_or(usize::MAX), "byte")
        };
        let sizes = match (self.before.map(size), self.after.map(size)) {
            (Some(old), Some(new)) => format!("{old} before, {new} after"),
            (Some(size), None) | (None, Some(size)) => size,
            (None, None) => String::new(),
        };
        format!("The content of {} was not kept ({sizes})\n", quoted("", self.path))
    }
}

fn named(content: Option<&Content>, name: String) -> String {
    if content.is_some() { name } else { "/dev/null".to_owned() }
}

/// A name above a diff; one with blanks has to be told from a date behind it.
fn whole(name: String) -> String {
    if name.contains(' ') { name + "\t" } else { name }
}

/// What is in a file, if it was kept; nothing is in one that is not there.
fn bytes(content: Option<&Content>) -> Option<&[u8]> {
    content.map_or(Some(&[]), |content| content.bytes.as_deref())
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

/// The mode as git has it.
fn mode(content: &Content) -> u32 {
    match content.shape {
        Shape::File => 0o100_000 | content.mode.unwrap_or(0o644),
        Shape::Link => 0o120_000,
    }
}

/// A path as git writes it: in quotes where it would not be one word on one line.
fn quoted(side: &str, path: &str) -> String {
    let path = if side.is_empty() { path.to_owned() } else { format!("{side}/{path}") };
    if !path.contains(|c: char| c.is_control() || c == '"' || c == '\\') {
        return path;
    }
    let mut text = String::from('"');
    for c in path.chars() {
        let _infallible = match c {
            '"' | '\\' => write!(text, "\\{c}"),
            '\n' => write!(text, "\\n"),
            '\t' => write!(text, "\\t"),
            c if c.is_ascii_control() => write!(text, "\\{:03o}", u32::from(c)),
            c => write!(text, "{c}"),
        };
    }
    text + "\""
}

#[cfg(test)]
mod tests;
