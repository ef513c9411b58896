//! What happened to the files of a workspace between two moments.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::change::{Gap, Shape};
use quintet_kernel::port::{Body, Changed, Content};

use super::Record;
use super::index::{Entry, Index, key};
use super::{Signature, unseen};
use crate::beneath::{self, Error, Place};
use crate::show;
use crate::spelling::spell;

/// The most files of which one call records what became of them.
const MOST_FILES: usize = 5_000;
/// The most content that is kept for one call, in bytes.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A file before and after.
type Pair<'a> = (Option<&'a Entry>, Option<&'a Entry>);

/// Finds out what happened.
pub(super) fn compare(root: &Path, old: &Index, new: &Index) -> Record {
    let mut pairs = pairs(old, new);
    pairs.retain(|pair| !is_still_there(root, *pair));
    let most = pairs.len().min(MOST_FILES);
    let room = if most < pairs.len() { 0 } else { MOST_BYTES };
    let gaps = unseen::gaps(root, &old.unseen, &new.unseen, old.at);
    let mut taker = Taker { root, old, new, room, bare: 0, gaps };
    let changes = pairs[..most].iter().filter_map(|pair| taker.take(*pair)).collect();
    if most < pairs.len() {
        let reason = format!("more than {MOST_FILES} files changed at once");
        taker.gap("", pairs.len() - most, &reason);
    }
    Record { changes, note: taker.note(pairs.len()), gaps: taker.gaps }
}

/// Whether a file was not found because it is in a folder that is not looked into now.
fn is_still_there(root: &Path, pair: Pair<'_>) -> bool {
    let (Some(file), None) = pair else { return false };
    let now = root.join(&file.path).symlink_metadata();
    file.settled && now.is_ok_and(|now| Signature::of(&now) == file.signature)
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
    /// How much content may still be kept.
    room: u64,
    /// How many files there was no room for.
    bare: usize,
    gaps: Vec<Gap>,
}

impl Taker<'_> {
    fn take(&mut self, pair: Pair<'_>) -> Option<Changed> {
        let entry = pair.0.or(pair.1)?;
        let path = &*spell(&entry.path);
        // What is new in a folder that was not looked into may have been there before.
        let unseen = self.old.unseen.iter().find(|unseen| entry.path.starts_with(&unseen.path));
        if let Some(unseen) = unseen.filter(|_| pair.0.is_none()) {
            self.gap(&show::path(&unseen.path), 1, "git ignored it before");
            return None;
        }
        let before = pair.0.map(|file| content(file, self.old));
        let after = match pair.1 {
            Some(file) => Some(content(file, self.new)),
            None => match still(self.root, &entry.path) {
                Some(now) => now,
                None => {
                    self.gap(path, 1, "it cannot be read");
                    return None;
                }
            },
        };
        let same = before == after && before.as_ref().is_some_and(|it| it.body.is_some());
        (!same).then(|| self.fit(Changed { path: path.to_owned(), before, after }))
    }

    /// Says that something is not recorded.
    fn gap(&mut self, path: &str, count: usize, reason: &str) {
        let count = count as u64;
        match self.gaps.iter_mut().find(|gap| gap.path == path) {
            Some(gap) if gap.reason == reason => gap.paths = gap.paths.map(|paths| paths + count),
            // It is known already that something there is not recorded.
            Some(_) => {}
            None => self.gaps.push(Gap {
                path: path.to_owned(),
                paths: Some(count),
                reason: reason.to_owned(),
            }),
        }
    }

    /// Leaves content out that there is no room for.
    fn fit(&mut self, mut change: Changed) -> Changed {
        let sides = || [&change.before, &change.after].into_iter().flatten();
        let is_kept = sides().all(|side| side.body.is_some());
        let length = sides().filter(|side| side.body.is_some()).map(|it| it.size).sum();
        if let Some(room) = self.room.checked_sub(length) {
            self.room = room;
            self.bare += usize::from(!is_kept);
            return change;
        }
        self.bare += 1;
        for side in [&mut change.before, &mut change.after].into_iter().flatten() {
            side.body = None;
        }
        change
    }

    fn note(&self, changed: usize) -> Option<String> {
        if changed > MOST_FILES {
            return Some(format!(
                "{changed} files changed; only {MOST_FILES} of them are recorded, without their \
                 content, so this cannot be undone"
            ));
        }
        let files = show::count(self.bare, "changed file");
        let note = format!("the content of {files} is too much to be kept for an undo");
        (self.bare > 0).then_some(note)
    }
}

fn content(file: &Entry, index: &Index) -> Content {
    let body = file.copy.and_then(|copy| index.pack.read(copy).ok()).map(Body::Bytes);
    let size = file.copy.map_or(file.signature.size, |copy| copy.length);
    let shape = file.signature.shape;
    let mode = (shape == Shape::File).then_some(file.signature.mode);
    Content { body, size, mode, shape }
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
            Some(Some(Content { body: Some(Body::Bytes(bytes)), size, mode, shape }))
        }
        Err(Error::Large(_, size)) => {
            Some(Some(Content { body: None, size, mode: None, shape: Shape::File }))
        }
        Err(Error::Directory(_)) => {
            let mode = place.stat().ok().map(|stat| stat.st_mode & 0o7777);
            Some(Some(Content { body: None, size: 0, mode, shape: Shape::Folder }))
        }
        Err(Error::Other { .. }) => None,
        Err(_) => Some(None),
    }
}
