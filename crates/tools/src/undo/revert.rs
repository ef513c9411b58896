//! Undoes changes, if the files are still as they left them.
//!
//! Everything is looked at before anything is done. What has to go goes first, from the inside out; then
//! the rest comes back, from the outside in. If a file turns out to be another right before it is
//! replaced, what was done so far is undone.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, RevertMode};

use super::current::{current, matches};
use crate::confined_fs::{ConfinedPath, Existing};
use crate::show;

/// The most reasons that are given.
const REASONS_LIMIT: usize = 20;

/// Turns every file back, or none.
///
/// # Errors
/// Why not, with the names of the files that are in the way.
pub(super) fn revert(root: &Path, changes: &[ChangedFile], run: RevertMode) -> Result<(), String> {
    let plan = Plan::new(root, changes)?;
    match run {
        RevertMode::Apply => plan.apply(),
        RevertMode::DryRun => Ok(()),
    }
}

/// What is to be done, and why it cannot be.
#[derive(Debug)]
struct Plan<'a> {
    root: &'a Path,
    /// Paths that became links.
    links: HashSet<&'a Path>,
    steps: Vec<Step<'a>>,
    reasons: Vec<String>,
}

/// What is there, and what is to be there instead.
type Exchange = (Option<FileContent>, Option<FileContent>);

/// One thing to be made into another.
#[derive(Debug)]
struct Step<'a> {
    path: &'a Path,
    from: Option<FileContent>,
    to: Option<FileContent>,
}

impl<'a> Plan<'a> {
    /// Finds out what is to be done, or why nothing can be.
    fn new(root: &'a Path, changes: &'a [ChangedFile]) -> Result<Self, String> {
        let became_link = |it: &&ChangedFile| has(it.after.as_ref(), FileKind::Link);
        let links = changes.iter().filter(became_link).map(|it| Path::new(&it.path)).collect();
        let mut plan = Self { root, links, steps: Vec::new(), reasons: Vec::new() };
        for of_path in changes.chunk_by(|one, other| one.path == other.path) {
            plan.check(of_path);
        }
        plan.keep_folders_in_use();
        if !plan.reasons.is_empty() {
            let more = plan.reasons.len().saturating_sub(REASONS_LIMIT);
            plan.reasons.truncate(REASONS_LIMIT);
            if more > 0 {
                plan.reasons.push(format!("and {more} more"));
            }
            return Err(format!("nothing was changed: {}", plan.reasons.join("; ")));
        }
        plan.steps.sort_by(|a, b| match (&a.to, &b.to) {
            (None, None) => b.path.cmp(a.path),
            (Some(_), Some(_)) => a.path.cmp(b.path),
            (None, Some(_)) => std::cmp::Ordering::Less,
            (Some(_), None) => std::cmp::Ordering::Greater,
        });
        Ok(plan)
    }

    /// Finds out what is left to be done to a file, or why it cannot be. A file stands there several
    /// times if it was changed by somebody else in between.
    fn check(&mut self, changes: &'a [ChangedFile]) {
        let [first, ..] = changes else { return };
        let [.., last] = changes else { return };
        match self.exchange(&first.path, first.before.as_ref(), last.after.as_ref()) {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) if changes.len() > 1 => {
                self.reasons.push(format!("{} was changed by somebody else meanwhile", first.path));
            }
            Ok(Some((from, to))) => self.steps.extend(halves(Path::new(&first.path), from, to)),
            Err(reason) => self.reasons.push(reason),
        }
    }

    /// What a file is to be turned from and into; nothing if it is as it was.
    fn exchange(
        &self,
        name: &str,
        before: Option<&FileContent>,
        after: Option<&FileContent>,
    ) -> Result<Option<Exchange>, String> {
        let path = Path::new(name);
        let now = if self.is_behind_a_link(path) { None } else { current(self.root, path)? };
        let (now, is_there) = (now.as_ref(), now.is_some());
        // A folder is as good as nothing where there was nothing, and one that is there again as good as
        // the one that was: what is in it has its own changes.
        let is_folder = now.is_some_and(|now| now.shape == FileKind::Folder);
        let left = before.is_none() && !has(after, FileKind::Folder);
        let again = has(before, FileKind::Folder) && after.is_none();
        if is_folder && (left || again) || matches(now, before)? {
            return Ok(None);
        }
        if let Some(why) = lost(name, before, after) {
            return Err(why);
        }
        if !matches(now, after)? {
            return Err(match (after, is_there) {
                (Some(_), false) => format!("{name} was deleted since"),
                (Some(_), true) => format!("{name} was changed since"),
                (None, _) => format!("{name} is there again"),
            });
        }
        let with_mode = |side: Option<&FileContent>| {
            let mut side = side.cloned()?;
            side.mode = side.mode.or_else(|| now?.mode());
            Some(side)
        };
        Ok(Some((with_mode(after), with_mode(before))))
    }

    /// True if a link is in the place of a folder around a path; it goes with the rest.
    fn is_behind_a_link(&self, path: &Path) -> bool {
        let is_link = |folder: &Path| {
            let now = current(self.root, folder);
            now.is_ok_and(|now| now.is_some_and(|now| now.shape == FileKind::Link))
        };
        path.ancestors().skip(1).any(|folder| self.links.contains(folder) && is_link(folder))
    }

    /// Leaves folders that the changes made, if somebody put something into them since.
    fn keep_folders_in_use(&mut self) {
        let (mut folders, files): (Vec<_>, Vec<_>) = self
            .steps
            .iter()
            .filter(|step| step.to.is_none())
            .partition(|step| step.removes_folder());
        folders.sort_unstable_by(|a, b| b.path.cmp(a.path));
        let mut gone: HashSet<&Path> = files.iter().map(|step| step.path).collect();
        let (mut kept, mut reasons) = (HashSet::new(), Vec::new());
        for folder in folders {
            let inside = self.root.join(folder.path).read_dir().into_iter().flatten().flatten();
            let mut inside = inside.map(|entry| folder.path.join(entry.file_name()));
            let new: Option<PathBuf> = inside.find(|path| !gone.contains(&**path));
            match new {
                None => {
                    gone.insert(folder.path);
                }
                Some(new) if self.is_in_the_way(folder.path) => reasons.push(format!(
                    "{} is new in {}",
                    show::path(&new),
                    show::path(folder.path)
                )),
                Some(_) => {
                    kept.insert(folder.path);
                }
            }
        }
        self.reasons.extend(reasons);
        self.steps.retain(|step| !(step.removes_folder() && kept.contains(step.path)));
    }

    /// True if something else is to come in the place of a folder.
    fn is_in_the_way(&self, path: &Path) -> bool {
        self.steps.iter().any(|step| step.path == path && step.to.is_some())
    }

    /// Does all of it or, if something cannot be done, nothing.
    fn apply(&self) -> Result<(), String> {
        for (done, step) in self.steps.iter().enumerate() {
            if let Err(error) = self.make(step.path, step.from.as_ref(), step.to.as_ref()) {
                return Err(self.roll_back(&self.steps[..done], &error));
            }
        }
        Ok(())
    }

    /// Undoes what was done, and says what came of it.
    fn roll_back(&self, done: &[Step<'_>], error: &str) -> String {
        let left: Vec<_> = done
            .iter()
            .rev()
            .filter(|it| self.make(it.path, it.to.as_ref(), it.from.as_ref()).is_err())
            .map(|step| show::path(step.path))
            .collect();
        if left.is_empty() {
            format!("nothing was changed: {error}")
        } else {
            format!("{error}; these files stay changed: {}", left.join(", "))
        }
    }

    /// Makes one thing into another, if it is still there.
    fn make(
        &self,
        path: &Path,
        from: Option<&FileContent>,
        to: Option<&FileContent>,
    ) -> Result<(), String> {
        if from.is_some() && !matches(current(self.root, path)?.as_ref(), from)? {
            return Err(format!("{} was changed meanwhile", show::path(path)));
        }
        let find = || ConfinedPath::find(self.root, path);
        let made = match (from, to) {
            (None, None) => Ok(()),
            (Some(from), None) => find().and_then(|place| place.remove(from.shape)),
            (None, Some(to)) => ConfinedPath::make(self.root, path)
                .and_then(|place| place.restore(to, Existing::Refuse)),
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
}

impl Step<'_> {
    /// True if a folder goes.
    fn removes_folder(&self) -> bool {
        self.to.is_none() && has(self.from.as_ref(), FileKind::Folder)
    }
}

/// A file takes the place of another at once; anything else has to go before another can come.
fn halves(path: &Path, from: Option<FileContent>, to: Option<FileContent>) -> Vec<Step<'_>> {
    let replaces = |a: &FileContent, b: &FileContent| {
        a.shape == b.shape || a.shape.has_content() && b.shape.has_content()
    };
    match (from, to) {
        (Some(from), Some(to)) if !replaces(&from, &to) => {
            vec![Step { path, from: Some(from), to: None }, Step { path, from: None, to: Some(to) }]
        }
        (from, to) => vec![Step { path, from, to }],
    }
}

/// Why a file cannot be made again.
fn lost(path: &str, before: Option<&FileContent>, after: Option<&FileContent>) -> Option<String> {
    let unkept = |side: &FileContent| side.body.is_none() && side.shape.has_content();
    let gone = |side: &FileContent| matches!(side.body, Some(BlobBody::Hash(_)));
    if [before, after].into_iter().flatten().any(unkept) || before.is_some_and(gone) {
        return Some(format!("what was in {path} was not kept"));
    }
    let special = has(before, FileKind::Socket) || has(before, FileKind::Other);
    special.then(|| format!("{path} was not a file, and cannot be made again"))
}

fn has(side: Option<&FileContent>, shape: FileKind) -> bool {
    side.is_some_and(|side| side.shape == shape)
}
