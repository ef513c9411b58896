//! What happened to the files of a workspace between two moments.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use quintet_kernel::change::Shape;
use quintet_kernel::port::{Changed, Content};

use super::Record;
use super::index::{Entry, Index, key};
use crate::beneath::{self, Error, Place};
use crate::show;

/// The most files of which one call records what became of them.
const MOST_FILES: usize = 5_000;
/// The most content that is kept for one call, in bytes.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A file before and after.
type Pair<'a> = (Option<&'a Entry>, Option<&'a Entry>);

/// Finds out what happened.
pub(super) fn compare(root: &Path, old: &Index, new: &Index) -> Record {
    let pairs = pairs(old, new);
    let most = pairs.len().min(MOST_FILES);
    let room = if most < pairs.len() { 0 } else { MOST_BYTES };
    let other_rules = new.has_other_rules(old);
    let mut taker = Taker { root, old, new, other_rules, room, ignored: 0, bare: 0 };
    let changes = pairs[..most].iter().filter_map(|pair| taker.take(*pair)).collect();
    Record { changes, note: taker.note(pairs.len()) }
}

/// The files that may be different. A few may turn out to be the same.
fn pairs<'a>(old: &'a Index, new: &'a Index) -> Vec<Pair<'a>> {
    let (mut before, mut after) = (old.files.iter().peekable(), new.files.iter().peekable());
    let mut pairs = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return pairs,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => key(&before.path).cmp(key(&after.path)),
        };
        let pair = match order {
            Ordering::Less => (before.next(), None),
            Ordering::Greater => (None, after.next()),
            Ordering::Equal => (before.next(), after.next()),
        };
        if !matches!(pair, (Some(a), Some(b)) if is_same((a, old), (b, new))) {
            pairs.push(pair);
        }
    }
}

fn is_same((before, old): (&Entry, &Index), (after, new): (&Entry, &Index)) -> bool {
    let content = match (before.copy, after.copy) {
        (Some(before), Some(after)) => Arc::ptr_eq(&old.pack, &new.pack) && before == after,
        (None, None) => before.signature.seems_same(&after.signature),
        (Some(_), None) | (None, Some(_)) => false,
    };
    let kind = |it: &Entry| (it.signature.mode, it.signature.shape);
    content && kind(before) == kind(after)
}

/// Takes down one file after the other.
struct Taker<'a> {
    root: &'a Path,
    old: &'a Index,
    new: &'a Index,
    /// Whether what is ignored is not what it was.
    other_rules: bool,
    /// How much content may still be kept.
    room: u64,
    /// How many files were ignored before, so that nobody knows what was in them.
    ignored: usize,
    /// How many files there was no room for.
    bare: usize,
}

impl Taker<'_> {
    fn take(&mut self, pair: Pair<'_>) -> Option<Changed> {
        let entry = pair.0.or(pair.1)?;
        // A name that is no text cannot be written down.
        let path = entry.path.to_str()?.to_owned();
        if self.other_rules && pair.0.is_none() && self.was_there(&entry.path) {
            self.ignored += 1;
            return None;
        }
        let before = pair.0.map(|file| content(file, self.old));
        let after = match pair.1 {
            Some(file) => Some(content(file, self.new)),
            None => still(self.root, &entry.path)?,
        };
        let same = before == after && before.as_ref().is_some_and(|it| it.bytes.is_some());
        (!same).then(|| self.fit(Changed { path, before, after }))
    }

    /// Leaves content out that there is no room for.
    fn fit(&mut self, mut change: Changed) -> Changed {
        let sides = || [&change.before, &change.after].into_iter().flatten();
        let length = sides().filter_map(|side| side.bytes.as_ref()).map(|it| it.len() as u64).sum();
        if let Some(room) = self.room.checked_sub(length) {
            self.room = room;
            return change;
        }
        self.bare += 1;
        for side in [&mut change.before, &mut change.after].into_iter().flatten() {
            side.bytes = None;
        }
        change
    }

    /// Whether a file was there when the workspace was looked at first.
    fn was_there(&self, path: &Path) -> bool {
        let created = self.root.join(path).symlink_metadata().and_then(|found| found.created());
        // Where a file system does not say, it might have been.
        let Ok(created) = created else { return true };
        let age = created.duration_since(UNIX_EPOCH).unwrap_or_default();
        (i64::try_from(age.as_secs()).unwrap_or(i64::MAX), i64::from(age.subsec_nanos()))
            < self.old.at
    }

    fn note(&self, changed: usize) -> Option<String> {
        let mut notes = Vec::new();
        if changed > MOST_FILES {
            notes.push(format!(
                "{changed} files changed; only {MOST_FILES} of them are recorded, without their \
                 content, so this cannot be undone"
            ));
        } else if self.bare > 0 {
            let files = show::count(self.bare, "changed file");
            notes.push(format!("the content of {files} is too much to be kept for an undo"));
        }
        if self.ignored > 0 {
            let files = show::count(self.ignored, "file");
            notes.push(format!("changes are not recorded of {files} that git ignored before"));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

fn content(file: &Entry, index: &Index) -> Content {
    let bytes = file.copy.and_then(|copy| index.pack.read(copy).ok());
    let size = file.copy.map_or(file.signature.size, |copy| copy.length);
    let shape = file.signature.shape;
    let mode = (shape == Shape::File).then_some(file.signature.mode);
    Content { bytes, size, mode, shape }
}

/// What a file is that was not found: gone as a rule, but it may be ignored now. Nothing if nobody
/// can say.
fn still(root: &Path, path: &Path) -> Option<Option<Content>> {
    let Ok(place) = Place::find(root, path) else { return Some(None) };
    // A link in its way leads to another file.
    if place.real(root).ok().as_deref() != Some(path) {
        return Some(None);
    }
    match place.look() {
        Ok(beneath::Content { bytes, mode, shape }) => {
            let size = bytes.len() as u64;
            Some(Some(Content { bytes: Some(bytes), size, mode, shape }))
        }
        Err(Error::Large(_, size)) => {
            Some(Some(Content { bytes: None, size, mode: None, shape: Shape::File }))
        }
        Err(Error::Other { .. }) => None,
        Err(_) => Some(None),
    }
}
