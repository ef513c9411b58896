//! Undoes changes, if the files are still as they left them.
//!
//! What has to go goes first, from the inside out; then the rest comes back, from the outside in. If
//! something cannot be done, what was done is undone.

use std::collections::HashSet;
use std::path::Path;

use quintet_kernel::change::Shape;
use quintet_kernel::port::{Body, Changed, Content};

use super::now::{Now, now};
use crate::beneath::{self, Existing, Place};
use crate::show;

pub(crate) mod builds;

/// Turns every file back, or none and says why not.
pub(super) fn put_back(root: &Path, changes: &[Changed]) -> Result<(), String> {
    let mut plan = Plan::default();
    let links = changes.iter().filter(|changed| has(changed.after.as_ref(), Shape::Link));
    let links: HashSet<&Path> = links.map(|changed| Path::new(&changed.path)).collect();
    for changed in changes {
        plan.check(root, changed, &links);
    }
    plan.leave_builds(root);
    plan.clear(root);
    if !plan.reasons.is_empty() {
        let reasons: Vec<_> = plan.reasons.into_iter().map(|(_, reason)| reason).collect();
        return Err(format!("nothing was changed: {}", reasons.join("; ")));
    }
    plan.order();
    carry_out(root, &plan.steps)
}

/// What is to be done, and why it cannot be.
#[derive(Debug, Default)]
struct Plan<'a> {
    steps: Vec<Step<'a>>,
    /// Each with the path that it is about.
    reasons: Vec<(&'a Path, String)>,
}

/// What is there, and what is to be there instead.
type Turn = (Option<Content>, Option<Content>);

/// One thing to be made into another.
#[derive(Debug)]
struct Step<'a> {
    path: &'a Path,
    from: Option<Content>,
    to: Option<Content>,
}

impl<'a> Plan<'a> {
    /// Finds out what is left to be done to a file, or why it cannot be.
    fn check(&mut self, root: &Path, changed: &'a Changed, links: &HashSet<&Path>) {
        let path = Path::new(&changed.path);
        match back(root, changed, links) {
            Ok(Some((from, to))) => self.steps.extend(halves(path, from, to)),
            Ok(None) => {}
            Err(reason) => self.reasons.push((path, reason)),
        }
    }

    /// Leaves folders that the changes made, if somebody put something into them since.
    fn clear(&mut self, root: &Path) {
        let mut folders: Vec<_> = self.steps.iter().filter(|step| step.clears()).collect();
        folders.sort_unstable_by(|a, b| b.path.cmp(a.path));
        let gone = self.steps.iter().filter(|step| step.to.is_none() && !step.clears());
        let mut gone: HashSet<&Path> = gone.map(|step| step.path).collect();
        let mut kept: HashSet<&Path> = HashSet::new();
        for step in folders {
            let inside = root.join(step.path).read_dir().into_iter().flatten().flatten();
            let mut inside = inside.map(|entry| step.path.join(entry.file_name()));
            match inside.find(|path| !gone.contains(&**path)) {
                None => {
                    gone.insert(step.path);
                }
                Some(new) if self.is_in_the_way(step.path) => {
                    let reason =
                        format!("{} is new in {}", show::path(&new), show::path(step.path));
                    self.reasons.push((step.path, reason));
                }
                Some(_) => {
                    kept.insert(step.path);
                }
            }
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

/// What a file is to be turned from and into; nothing if it is as it was.
fn back(root: &Path, changed: &Changed, links: &HashSet<&Path>) -> Result<Option<Turn>, String> {
    let Changed { path, before, after } = changed;
    // Where a link is in the place of its folder, which goes with the rest, the file is not there.
    let mut folders = Path::new(path).ancestors().skip(1);
    let replaced = folders.any(|folder| links.contains(folder) && leads_on(root, folder));
    let now = if replaced { Now::default() } else { now(root, path.as_ref())? };
    // A folder is as good as nothing where there was nothing, and one that is there again as good as
    // the one that was: what is in it has its own changes.
    let left = now.is(Shape::Folder) && before.is_none() && !has(after.as_ref(), Shape::Folder);
    let again = now.is(Shape::Folder) && has(before.as_ref(), Shape::Folder) && after.is_none();
    if left || again || now.matches(before.as_ref())? {
        return Ok(None);
    }
    let unkept = |side: &Content| side.body.is_none() && side.shape.has_content();
    let gone = |side: &Content| matches!(side.body, Some(Body::Hash(_)));
    if [before, after].into_iter().flatten().any(unkept) || before.as_ref().is_some_and(gone) {
        return Err(format!("what was in {path} was not kept"));
    }
    if has(before.as_ref(), Shape::Socket) || has(before.as_ref(), Shape::Other) {
        return Err(format!("{path} was not a file, and cannot be made again"));
    }
    if !now.matches(after.as_ref())? {
        return Err(match (after, now.is_there()) {
            (Some(_), false) => format!("{path} was deleted since"),
            (Some(_), true) => format!("{path} was changed since"),
            (None, _) => format!("{path} is there again"),
        });
    }
    let with_mode = |side: &Option<Content>| {
        let mut side = side.clone()?;
        side.mode = side.mode.or(now.mode());
        Some(side)
    };
    Ok(Some((with_mode(after), with_mode(before))))
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

/// Whether there is a link now.
fn leads_on(root: &Path, path: &Path) -> bool {
    now(root, path).is_ok_and(|now| now.is(Shape::Link))
}

fn has(side: Option<&Content>, shape: Shape) -> bool {
    side.is_some_and(|side| side.shape == shape)
}
