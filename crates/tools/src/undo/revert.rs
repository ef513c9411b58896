//! Undoes changes, if the files are still as they left them.
//!
//! Everything is looked at before anything is done. What has to go goes first, from the inside out; then
//! the rest comes back, from the outside in. If a file turns out to be another right before it is
//! replaced, what was done so far is undone.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::Path;

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, RevertMode};

use super::current::{current, matches};
use crate::confined_fs::{ConfinedPath, Existing};
use crate::show;

/// The most reasons that are given.
const REASONS_LIMIT: usize = 20;

/// One thing to be made into another.
#[derive(Debug)]
struct Step<'a> {
    path: &'a Path,
    from: Option<FileContent>,
    to: Option<FileContent>,
}

/// Turns every file back, or none.
///
/// # Errors
/// Why not, with the names of the files that are in the way.
pub(super) fn revert(root: &Path, changes: &[ChangedFile], run: RevertMode) -> Result<(), String> {
    let (steps, mut reasons) = plan(root, changes);
    if !reasons.is_empty() {
        let more = reasons.len().saturating_sub(REASONS_LIMIT);
        reasons.truncate(REASONS_LIMIT);
        reasons.extend((more > 0).then(|| format!("and {more} more")));
        return Err(format!("nothing was changed: {}", reasons.join("; ")));
    }
    match run {
        RevertMode::Apply => apply(root, &steps),
        RevertMode::DryRun => Ok(()),
    }
}

/// What is to be done, and why it cannot be.
fn plan<'a>(root: &Path, changes: &'a [ChangedFile]) -> (Vec<Step<'a>>, Vec<String>) {
    let became_link = |it: &&ChangedFile| has(it.after.as_ref(), FileKind::Link);
    let links = changes.iter().filter(became_link).map(|it| Path::new(&it.path)).collect();
    let (mut steps, mut reasons) = (Vec::new(), Vec::new());
    for of_path in changes.chunk_by(|one, other| one.path == other.path) {
        let ([first, ..], [.., last]) = (of_path, of_path) else { continue };
        match step(root, &links, &first.path, [first.before.as_ref(), last.after.as_ref()]) {
            Ok(None) => {}
            // A file stands there several times if somebody else changed it in between.
            Ok(Some(_)) | Err(_) if of_path.len() > 1 => {
                reasons.push(format!("{} was changed by somebody else meanwhile", first.path));
            }
            Ok(Some(step)) => steps.extend(step.halves()),
            Err(reason) => reasons.push(reason),
        }
    }
    steps.sort_by(|a, b| match (&a.to, &b.to) {
        (None, None) => b.path.cmp(a.path),
        (Some(_), Some(_)) => a.path.cmp(b.path),
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
    });
    keep_folders_in_use(root, &mut steps, &mut reasons);
    (steps, reasons)
}

/// What is to be done to a file so that it is as before; nothing if it is.
fn step<'a>(
    root: &Path,
    links: &HashSet<&Path>,
    name: &'a str,
    [before, after]: [Option<&FileContent>; 2],
) -> Result<Option<Step<'a>>, String> {
    let path = Path::new(name);
    let now = if is_behind_a_link(root, links, path) { None } else { current(root, path)? };
    let now = now.as_ref();
    // A folder is as good as nothing where there was nothing, and one that is there again as good as
    // the one that was: what is in it has its own changes.
    let is_folder = now.is_some_and(|now| now.shape == FileKind::Folder);
    let left = before.is_none() && !has(after, FileKind::Folder);
    let again = has(before, FileKind::Folder) && after.is_none();
    if is_folder && (left || again) || matches(now, before)? {
        return Ok(None);
    }
    let unkept = |side: &FileContent| side.body.is_none() && side.shape.has_content();
    let is_gone = |side: &FileContent| matches!(side.body, Some(BlobBody::Hash(_)));
    if [before, after].into_iter().flatten().any(unkept) || before.is_some_and(is_gone) {
        return Err(format!("what was in {name} was not kept"));
    }
    if !matches(now, after)? {
        return Err(match (after, now) {
            (Some(_), None) => format!("{name} was deleted since"),
            (Some(_), Some(_)) => format!("{name} was changed since"),
            (None, _) => format!("{name} is there again"),
        });
    }
    let with_mode = |side: Option<&FileContent>| {
        let mut side = side.cloned()?;
        side.mode = side.mode.or_else(|| now?.mode);
        Some(side)
    };
    Ok(Some(Step { path, from: with_mode(after), to: with_mode(before) }))
}

/// True if a link is in the place of a folder around a path; it goes with the rest.
fn is_behind_a_link(root: &Path, links: &HashSet<&Path>, path: &Path) -> bool {
    let is_link = |folder: &Path| {
        let now = current(root, folder);
        now.is_ok_and(|now| now.is_some_and(|now| now.shape == FileKind::Link))
    };
    path.ancestors().skip(1).any(|folder| links.contains(folder) && is_link(folder))
}

/// Leaves folders that the changes made, if somebody put something into them since.
fn keep_folders_in_use(root: &Path, steps: &mut Vec<Step<'_>>, reasons: &mut Vec<String>) {
    let arriving: HashSet<&Path> =
        steps.iter().filter(|step| step.to.is_some()).map(|step| step.path).collect();
    let mut gone = HashSet::new();
    steps.retain(|Step { path, from, to }| {
        if to.is_some() {
            return true;
        }
        let inside = root.join(path).read_dir().into_iter().flatten().flatten();
        let mut inside = inside
            .filter(|_| has(from.as_ref(), FileKind::Folder))
            .map(|entry| path.join(entry.file_name()));
        let new = inside.find(|inside| !gone.contains(inside));
        match &new {
            None => {
                gone.insert(path.to_path_buf());
            }
            Some(new) if arriving.contains(path) => {
                reasons.push(format!("{} is new in {}", show::path(new), show::path(path)));
            }
            Some(_) => {}
        }
        new.is_none()
    });
}

/// Does all of it or, if something cannot be done, nothing.
fn apply(root: &Path, steps: &[Step<'_>]) -> Result<(), String> {
    for (done, step) in steps.iter().enumerate() {
        let Err(error) = make(root, step.path, step.from.as_ref(), step.to.as_ref()) else {
            continue;
        };
        let undo = |it: &&Step<'_>| make(root, it.path, it.to.as_ref(), it.from.as_ref()).is_err();
        let left: Vec<_> = steps[..done].iter().rev().filter(undo).collect();
        if left.is_empty() {
            return Err(format!("nothing was changed: {error}"));
        }
        let left: Vec<_> = left.iter().map(|step| show::path(step.path)).collect();
        return Err(format!("{error}; these files stay changed: {}", left.join(", ")));
    }
    Ok(())
}

/// Makes one thing into another, if it is still there.
fn make(
    root: &Path,
    path: &Path,
    from: Option<&FileContent>,
    to: Option<&FileContent>,
) -> Result<(), String> {
    if from.is_some() && !matches(current(root, path)?.as_ref(), from)? {
        return Err(format!("{} was changed meanwhile", show::path(path)));
    }
    let find = || ConfinedPath::find(root, path);
    let made = match (from, to) {
        (None, None) => Ok(()),
        (Some(from), None) => find().and_then(|place| place.remove(from.shape)),
        (None, Some(to)) => {
            ConfinedPath::make(root, path).and_then(|place| place.restore(to, Existing::Refuse))
        }
        (Some(from), Some(to)) if to.shape.has_content() => {
            find().and_then(|place| place.restore(to, Existing::Replace(from.shape)))
        }
        // Nothing but its permissions can be another.
        (Some(_), Some(to)) => {
            to.mode.map_or(Ok(()), |mode| find().and_then(|place| place.allow(mode)))
        }
    };
    made.map_err(|error| error.to_string())
}

impl Step<'_> {
    /// A file takes the place of another at once; anything else has to go before another can come.
    fn halves(self) -> Vec<Self> {
        match (&self.from, &self.to) {
            (Some(from), Some(to))
                if from.shape != to.shape
                    && !(from.shape.has_content() && to.shape.has_content()) =>
            {
                let Self { path, from, to } = self;
                vec![Self { path, from, to: None }, Self { path, from: None, to }]
            }
            (_, _) => vec![self],
        }
    }
}

fn has(side: Option<&FileContent>, shape: FileKind) -> bool {
    side.is_some_and(|side| side.shape == shape)
}
