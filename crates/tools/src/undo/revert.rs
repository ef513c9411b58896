//! Reverts changes if the files are still as the changes left them.
//!
//! All files are checked before any is touched. Removals come first, contents before their folder; then
//! the rest, a folder before its contents. Each file is checked again right before it is replaced. If one
//! changed meanwhile, everything done so far is undone.

use std::collections::HashSet;
use std::path::Path;

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, RevertMode};

use super::current::{current, matches};
use crate::confined_fs::{ConfinedPath, Existing};
use crate::show;

/// How many reasons are listed.
const REASONS_LIMIT: usize = 20;

/// A file, and what it is to become.
struct Step<'a> {
    path: &'a Path,
    from: Option<FileContent>,
    to: Option<FileContent>,
}

/// Reverts every file, or none.
///
/// # Errors
/// If a file is neither as the changes left it nor as it was before. The reason names each file.
pub(super) fn revert(root: &Path, changes: &[ChangedFile], mode: RevertMode) -> Result<(), String> {
    let mut reasons = Vec::new();
    let steps = plan(root, changes, &mut reasons);
    if !reasons.is_empty() {
        let more = reasons.len().saturating_sub(REASONS_LIMIT);
        reasons.truncate(REASONS_LIMIT);
        reasons.extend((more > 0).then(|| format!("and {more} more")));
        return Err(format!("nothing was changed: {}", reasons.join("; ")));
    }
    match mode {
        RevertMode::Apply => apply(root, &steps),
        RevertMode::DryRun => Ok(()),
    }
}

fn plan<'a>(root: &Path, changes: &'a [ChangedFile], reasons: &mut Vec<String>) -> Vec<Step<'a>> {
    let became_link = |it: &&ChangedFile| has(it.after.as_ref(), FileKind::Link);
    let links = changes.iter().filter(became_link).map(|it| Path::new(&it.path)).collect();
    let (mut removals, mut others) = (Vec::new(), Vec::new());
    for of_path in changes.chunk_by(|one, other| one.path == other.path) {
        let ([first, ..], [.., last]) = (of_path, of_path) else { continue };
        let (path, sides) = (&first.path, [first.before.as_ref(), last.after.as_ref()]);
        let Step { path, from, to } = match step(root, &links, path, sides) {
            Ok(None) => continue,
            // A file is listed several times if something else changed it in between.
            Ok(Some(_)) | Err(_) if of_path.len() > 1 => {
                reasons.push(format!("{path} was changed by somebody else meanwhile"));
                continue;
            }
            Err(reason) => {
                reasons.push(reason);
                continue;
            }
            Ok(Some(step)) => step,
        };
        match (&from, &to) {
            (_, None) => removals.push(Step { path, from, to }),
            // Only a file or link can replace another in one operation.
            (Some(old), Some(new)) if old.shape != new.shape && !(is_file(old) && is_file(new)) => {
                removals.push(Step { path, from, to: None });
                others.push(Step { path, from: None, to });
            }
            (_, Some(_)) => others.push(Step { path, from, to }),
        }
    }
    removals.sort_by(|one, other| other.path.cmp(one.path));
    others.sort_by(|one, other| one.path.cmp(other.path));
    keep_folders_in_use(root, &mut removals, &others, reasons);
    removals.extend(others);
    removals
}

/// What restores a file; `None` if it is as before.
fn step<'a>(
    root: &Path,
    links: &HashSet<&Path>,
    name: &'a str,
    [before, after]: [Option<&FileContent>; 2],
) -> Result<Option<Step<'a>>, String> {
    let path = Path::new(name);
    let now = if is_behind_new_link(root, links, path) { None } else { current(root, path)? };
    let now = now.as_ref();
    // The contents of a folder have changes of their own. So one that exists needs no change if there
    // was one before, or nothing.
    let is_folder = now.is_some_and(|now| now.kind == FileKind::Folder);
    let is_kept = before.is_none() && !has(after, FileKind::Folder);
    let is_back = has(before, FileKind::Folder) && after.is_none();
    if is_folder && (is_kept || is_back) || matches(now, before)? {
        return Ok(None);
    }
    let is_lost = |side: &FileContent| side.body.is_none() && is_file(side);
    let is_deleted = |side: &FileContent| matches!(side.body, Some(BlobBody::Hash(_)));
    if [before, after].into_iter().flatten().any(is_lost) || before.is_some_and(is_deleted) {
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

/// True if one of the changes put a link in the place of a folder of this path.
fn is_behind_new_link(root: &Path, links: &HashSet<&Path>, path: &Path) -> bool {
    let is_link = |folder: &Path| {
        let now = current(root, folder).ok().flatten();
        now.is_some_and(|now| now.kind == FileKind::Link)
    };
    path.ancestors().skip(1).any(|folder| links.contains(folder) && is_link(folder))
}

/// Keeps folders into which something was put since, unless another file has to take their place.
fn keep_folders_in_use(
    root: &Path,
    removals: &mut Vec<Step<'_>>,
    others: &[Step<'_>],
    reasons: &mut Vec<String>,
) {
    let mut removed = HashSet::new();
    removals.retain(|Step { path, from, .. }| {
        let folder = has(from.as_ref(), FileKind::Folder).then(|| root.join(path).read_dir());
        let inside = folder.into_iter().flatten().flatten().flatten();
        let mut inside = inside.map(|entry| path.join(entry.file_name()));
        let Some(new) = inside.find(|it| !removed.contains(it)) else {
            return removed.insert(path.to_path_buf());
        };
        if others.iter().any(|other| other.path == *path) {
            reasons.push(format!("{} is new in {}", show::path(&new), show::path(path)));
        }
        false
    });
}

/// Carries out all steps or, if one fails, none.
fn apply(root: &Path, steps: &[Step<'_>]) -> Result<(), String> {
    for (done, step) in steps.iter().enumerate() {
        let Err(error) = make(root, step.path, step.from.as_ref(), step.to.as_ref()) else {
            continue;
        };
        let fails = |it: &&Step<'_>| make(root, it.path, it.to.as_ref(), it.from.as_ref()).is_err();
        let left = steps[..done].iter().rev().filter(fails).map(|step| show::path(step.path));
        let left: Vec<_> = left.collect();
        return Err(if left.is_empty() {
            format!("nothing was changed: {error}")
        } else {
            format!("{error}; these files stay changed: {}", left.join(", "))
        });
    }
    Ok(())
}

/// Turns a file, which must still be as expected, into another.
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
        (Some(from), Some(to)) if is_file(to) => {
            find().and_then(|place| place.restore(to, Existing::Replace(from.shape)))
        }
        // Only the permissions can differ.
        (Some(_), Some(to)) => {
            to.mode.map_or(Ok(()), |mode| find().and_then(|place| place.allow(mode)))
        }
    };
    made.map_err(|error| error.to_string())
}

fn is_file(side: &FileContent) -> bool {
    side.shape.has_content()
}

fn has(side: Option<&FileContent>, shape: FileKind) -> bool {
    side.is_some_and(|side| side.shape == shape)
}
