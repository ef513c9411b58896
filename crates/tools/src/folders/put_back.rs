//! Undoes changes, if the files are still as they left them.
//!
//! What has to go goes first, from the inside out; then the rest comes back, from the outside in. If
//! something cannot be done, what was done is undone.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quintet_kernel::change::Shape;
use quintet_kernel::port::{Changed, Content};

use crate::beneath::{self, Existing, Place};
use crate::{show, spelling};

mod around;
mod back;
pub(crate) mod builds;
mod own;

use around::Around;

/// Turns every file back, or none and says why not.
pub(super) fn put_back(root: &Path, changes: &[Changed]) -> Result<(), String> {
    let paths: Vec<_> = changes.iter().map(|changed| spelling::path(&changed.path)).collect();
    let changes: Vec<(&Path, &Changed)> = paths.iter().map(|path| &**path).zip(changes).collect();
    let around = Around::new(root, &changes);
    let mut plan = Plan::default();
    for (path, changed) in changes {
        plan.check(&around, path, changed);
    }
    plan.leave_builds(root);
    plan.clear(&around);
    plan.mind_locks(&around);
    if !plan.reasons.is_empty() {
        let reasons: Vec<_> = plan.reasons.into_iter().map(|(_, reason)| reason).collect();
        return Err(format!("nothing was changed: {}", reasons.join("; ")));
    }
    plan.order();
    carry_out(root, &plan.steps)?;
    plan.date_indexes(&around);
    Ok(())
}

/// What is to be done, and why it cannot be.
#[derive(Debug, Default)]
struct Plan<'a> {
    steps: Vec<Step<'a>>,
    /// Each with the path that it is about.
    reasons: Vec<(&'a Path, String)>,
}

/// One thing to be made into another.
#[derive(Debug)]
struct Step<'a> {
    path: &'a Path,
    from: Option<Content>,
    to: Option<Content>,
}

impl<'a> Plan<'a> {
    /// Finds out what is left to be done to a file, or why it cannot be.
    fn check(&mut self, around: &Around<'_>, path: &'a Path, changed: &'a Changed) {
        if around.stays(path, changed) {
            return;
        }
        match around.back(path, changed) {
            Ok(Some((from, to))) => self.steps.extend(halves(path, from, to)),
            Ok(None) => {}
            Err(stuck) if around.forgives(path, &stuck) => {}
            Err(stuck) => self.reasons.push((path, stuck.to_string())),
        }
    }

    /// Leaves folders that the changes made, if somebody put something into them since.
    fn clear(&mut self, around: &Around<'_>) {
        let mut folders: Vec<_> = self.steps.iter().filter(|step| step.clears()).collect();
        folders.sort_unstable_by(|a, b| b.path.cmp(a.path));
        let gone = self.steps.iter().filter(|step| step.to.is_none() && !step.clears());
        let mut gone: HashSet<&Path> = gone.map(|step| step.path).collect();
        let mut kept: HashSet<&Path> = HashSet::new();
        for step in folders {
            let inside = around.root.join(step.path).read_dir().into_iter().flatten().flatten();
            let inside = inside.map(|entry| step.path.join(entry.file_name()));
            let new: Vec<_> = inside.filter(|path| !gone.contains(&**path)).collect();
            if new.is_empty() {
                gone.insert(step.path);
                continue;
            }
            let in_the_way = self.is_in_the_way(step.path);
            let counts = |new: &&PathBuf| !kept.contains(&***new) && around.needs(new);
            let needed = if in_the_way { new.first() } else { new.iter().find(counts) };
            if let Some(new) = needed {
                let reason = format!("{} is new in {}", show::path(new), show::path(step.path));
                self.reasons.push((step.path, reason));
            }
            kept.insert(step.path);
        }
        self.steps.retain(|step| !(step.clears() && kept.contains(step.path)));
    }

    /// Whether something else is to come in the place of a folder.
    fn is_in_the_way(&self, path: &Path) -> bool {
        self.steps.iter().any(|step| step.path == path && step.to.is_some())
    }

    fn order(&mut self) {
        let goes = |step: &Step<'_>| step.to.is_none();
        self.steps.sort_by(|a, b| match (goes(a), goes(b)) {
            (true, true) => b.path.cmp(a.path),
            (false, false) => a.path.cmp(b.path),
            (goes, _) => {
                if goes {
                    std::cmp::Ordering::Less
                } else {
                    std::cmp::Ordering::Greater
                }
            }
        });
    }
}

/// A file takes the place of another at once; anything else has to go before another can come.
fn halves(path: &Path, from: Option<Content>, to: Option<Content>) -> Vec<Step<'_>> {
    let replaces = |a: &Content, b: &Content| {
        a.shape == b.shape || a.shape.has_content() && b.shape.has_content()
    };
    match (from, to) {
        (Some(from), Some(to)) if !replaces(&from, &to) => {
            vec![Step { path, from: Some(from), to: None }, Step { path, from: None, to: Some(to) }]
        }
        (from, to) => vec![Step { path, from, to }],
    }
}

/// Does all of it or, if something cannot be done, nothing.
fn carry_out(root: &Path, steps: &[Step<'_>]) -> Result<(), String> {
    for (done, step) in steps.iter().enumerate() {
        if let Err(error) = make(root, step.path, step.from.as_ref(), step.to.as_ref()) {
            let stuck: Vec<_> = steps[..done]
                .iter()
                .rev()
                .filter(|it| make(root, it.path, it.to.as_ref(), it.from.as_ref()).is_err())
                .map(|step| show::path(step.path))
                .collect();
            return Err(if stuck.is_empty() {
                format!("nothing was changed: {error}")
            } else {
                format!("{error}; these files stay changed: {}", stuck.join(", "))
            });
        }
    }
    Ok(())
}

fn make(
    root: &Path,
    path: &Path,
    from: Option<&Content>,
    to: Option<&Content>,
) -> Result<(), beneath::Error> {
    match (from, to) {
        (None, None) => Ok(()),
        (Some(from), None) => Place::find(root, path)?.remove(from.shape),
        (None, Some(to)) => Place::make(root, path)?.restore(to, Existing::Refuse),
        (Some(from), Some(to)) if to.shape.has_content() => {
            Place::find(root, path)?.restore(to, Existing::Replace(from.shape))
        }
        // Nothing but its permissions can be another.
        (Some(_), Some(to)) => to.mode.map_or(Ok(()), |mode| Place::find(root, path)?.allow(mode)),
    }
}

impl Step<'_> {
    /// Whether a folder goes.
    fn clears(&self) -> bool {
        self.to.is_none() && has(self.from.as_ref(), Shape::Folder)
    }
}

fn has(side: Option<&Content>, shape: Shape) -> bool {
    side.is_some_and(|side| side.shape == shape)
}
