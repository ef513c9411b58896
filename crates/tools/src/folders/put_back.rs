//! Undoes changes, if the files are still as they left them.

use std::collections::HashSet;
use std::path::Path;

use quintet_kernel::change::Shape;
use quintet_kernel::port::{Changed, Content};

use crate::beneath::{self, Error, Place};
use crate::change::{self, Change};

/// Turns every file back, or none and says why not.
pub(super) fn put_back(root: &Path, changes: &[Changed]) -> Result<(), String> {
    let (mut plan, mut reasons) = (Vec::new(), Vec::new());
    let links = changes.iter().filter(|changed| is_link(changed.after.as_ref()));
    let links: HashSet<&Path> = links.map(|changed| Path::new(&changed.path)).collect();
    for changed in changes {
        match back(root, changed, &links) {
            Ok(change) => plan.extend(change),
            Err(reason) => reasons.push(reason),
        }
    }
    if !reasons.is_empty() {
        return Err(format!("nothing was changed: {}", reasons.join("; ")));
    }
    // A file may be where a folder was; it has to go first.
    plan.sort_by_key(|change| change.after.is_some());
    change::make(root, &plan)
}

/// What is left to be done to a file, or why it cannot be.
fn back(root: &Path, changed: &Changed, links: &HashSet<&Path>) -> Result<Option<Change>, String> {
    let Changed { path, before, after } = changed;
    // Where a link is in the place of its folder, which goes with the rest, the file is not there.
    let mut folders = Path::new(path).ancestors().skip(1);
    let replaced = folders.any(|folder| links.contains(folder) && leads_on(root, folder));
    let now = if replaced { None } else { now(root, changed)? };
    if is(now.as_ref(), before.as_ref()) {
        return Ok(None);
    }
    if [before, after].into_iter().flatten().any(|side| side.bytes.is_none()) {
        return Err(format!("{path} was too large to be kept"));
    }
    if !is(now.as_ref(), after.as_ref()) {
        return Err(match (after, &now) {
            (Some(_), None) => format!("{path} was deleted since"),
            (Some(_), Some(_)) => format!("{path} was changed since"),
            (None, _) => format!("{path} is there again"),
        });
    }
    let mode = now.as_ref().and_then(|now| now.mode);
    let before = before.as_ref().map(|before| beneath::Content {
        bytes: before.bytes.clone().unwrap_or_default(),
        mode: before.mode.or(mode),
        shape: before.shape,
    });
    Ok(Some(Change::of(path.into(), now, before)))
}

/// A file as it is.
fn now(root: &Path, changed: &Changed) -> Result<Option<beneath::Content>, String> {
    let Changed { path, before, after } = changed;
    let place = Place::find(root, path.as_ref());
    // Behind a link it is another file, which may be meant by another change.
    if let Ok(place) = &place
        && place.real(root).ok().as_deref() != Some(path.as_ref())
    {
        return Err(format!("{path} is behind a link now"));
    }
    match beneath::look(root, path.as_ref()) {
        Ok(now) => Ok(now),
        // A folder is as good as nothing where there was no file before.
        Err(Error::Directory(_)) if before.is_none() => Ok(None),
        Err(Error::Large(..)) if [before, after].iter().any(|side| is_unkept(side.as_ref())) => {
            Err(format!("{path} was too large to be kept"))
        }
        Err(Error::Large(..) | Error::Directory(_) | Error::Special(_)) => {
            let what = if after.is_some() { "was changed since" } else { "is there again" };
            Err(format!("{path} {what}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Whether there is a link now.
fn leads_on(root: &Path, path: &Path) -> bool {
    let found = beneath::look(root, path).ok().flatten();
    found.is_some_and(|found| found.shape == Shape::Link)
}

fn is_link(side: Option<&Content>) -> bool {
    side.is_some_and(|side| side.shape == Shape::Link)
}

fn is_unkept(side: Option<&Content>) -> bool {
    side.is_some_and(|side| side.bytes.is_none())
}

/// Whether a file is as it was recorded. What was not kept, nobody can say.
fn is(now: Option<&beneath::Content>, then: Option<&Content>) -> bool {
    match (now, then) {
        (None, None) => true,
        (Some(now), Some(then)) => {
            then.bytes.as_ref() == Some(&now.bytes)
                && then.shape == now.shape
                && (then.mode.is_none() || then.mode == now.mode)
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}
