//! In which order a plan is carried out.
//!
//! What has to go goes first, from the inside out; then the rest comes back, from the outside in. What
//! could not be brought back, because only the hash of what is there was kept, goes when all of this is
//! done; and after it comes what it is in the way of.

use std::collections::HashSet;
use std::path::Path;

use quintet_kernel::port::{Body, Content};

use super::{Plan, Step};

/// When something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Goes,
    Comes,
    GoesForGood,
    ComesAfter,
}

impl<'a> Plan<'a> {
    pub(super) fn order(&mut self) {
        let last = self.last();
        // A folder that may not be written to any more lets nothing go.
        let around: HashSet<_> = last.iter().flat_map(|path| path.ancestors()).collect();
        let moment = |step: &Step<'_>| {
            let is_behind = || step.path.ancestors().any(|path| last.contains(path));
            let is_after = || around.contains(step.path) || is_behind();
            match step.to {
                None if last.contains(step.path) => Moment::GoesForGood,
                None => Moment::Goes,
                Some(_) if is_final(step) || is_after() => Moment::ComesAfter,
                Some(_) => Moment::Comes,
            }
        };
        self.steps.sort_by(|a, b| {
            let by_path = if a.to.is_none() { b.path.cmp(a.path) } else { a.path.cmp(b.path) };
            moment(a).cmp(&moment(b)).then(by_path)
        });
    }

    /// What goes and cannot be brought back, with the folders around it that go too.
    fn last(&self) -> HashSet<&'a Path> {
        let gone = || self.steps.iter().filter(|step| step.to.is_none());
        let folders: HashSet<&Path> = gone().filter(|it| it.clears()).map(|it| it.path).collect();
        let mut last = HashSet::new();
        for step in gone().filter(|step| is_final(step)) {
            last.insert(step.path);
            last.extend(step.path.ancestors().skip(1).filter(|it| folders.contains(it)));
        }
        last
    }
}

/// Whether nobody could bring back what is there.
fn is_final(step: &Step<'_>) -> bool {
    let is_hash = |from: &Content| matches!(from.body, Some(Body::Hash(_)));
    step.from.as_ref().is_some_and(is_hash)
}
