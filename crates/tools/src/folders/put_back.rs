//! Undoes changes, if the files are still as they left them.
//!
//! Everything is looked at before anything is done: see [`order`] and [`carry_out`] for the rest.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quintet_kernel::change::Shape;
use quintet_kernel::port::{Changed, Content};

use crate::{show, spelling};

mod around;
mod back;
pub(crate) mod builds;
mod carry_out;
mod git;
mod locks;
mod meanwhile;
mod order;
mod packed;

use around::Around;

/// Turns every file back, or none and says why not.
pub(super) fn put_back(root: &Path, changes: &[Changed]) -> Result<(), String> {
    let paths: Vec<_> = changes.iter().map(|changed| spelling::path(&changed.path)).collect();
    let changes: Vec<(&Path, &Changed)> = paths.iter().map(|path| &**path).zip(changes).collect();
    let around = Around::new(root, &changes);
    locks::clear(&around, &changes);
    let plan = Plan::new(&around, &changes)?;
    let mut locks =
        plan.lock(&around).map_err(|reason| format!("nothing was changed: {reason}"))?;
    around.carry_out(&plan.steps, &mut locks)?;
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
    /// Finds out what is to be done, or why nothing can be.
    fn new(around: &Around<'_>, changes: &[(&'a Path, &Changed)]) -> Result<Self, String> {
        let mut plan = Self::default();
        for of_path in changes.chunk_by(|(one, _), (other, _)| one == other) {
            match of_path {
                [(path, changed)] => plan.check(around, path, changed),
                [(path, _), ..] => plan.check_runs(around, path, of_path),
                [] => {}
            }
        }
        plan.leave_builds(around.root);
        plan.clear(around);
        plan.mind_locks(around);
        if !plan.reasons.is_empty() {
            let reasons: Vec<_> = plan.reasons.into_iter().map(|(_, reason)| reason).collect();
            return Err(format!("nothing was changed: {}", reasons.join("; ")));
        }
        plan.order();
        Ok(plan)
    }

    /// Finds out what is left to be done to a file, or why it cannot be.
    fn check(&mut self, around: &Around<'_>, path: &'a Path, changed: &Changed) {
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

impl Step<'_> {
    /// Whether a folder goes.
    fn clears(&self) -> bool {
        self.to.is_none() && has(self.from.as_ref(), Shape::Folder)
    }
}

fn has(side: Option<&Content>, shape: Shape) -> bool {
    side.is_some_and(|side| side.shape == shape)
}

#[cfg(test)]
mod tests;
