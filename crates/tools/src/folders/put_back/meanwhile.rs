//! Files that somebody else changed while the changes were being made: to turn them back to what they
//! were before all of it would take that along.

use std::path::Path;

use quintet_kernel::change::git::Own;
use quintet_kernel::port::Changed;

use super::Plan;
use super::around::Around;
use crate::folders::now::stages_alike;

impl<'a> Plan<'a> {
    /// Finds out what is left to be done to a file that was changed several times, each time from
    /// something else than it was left as.
    pub(super) fn check_runs(
        &mut self,
        around: &Around<'_>,
        path: &'a Path,
        runs: &[(&Path, &Changed)],
    ) {
        let ([(_, first), ..], [.., (_, last)]) = (runs, runs) else { return };
        let (before, after) = (first.before.clone(), last.after.clone());
        let whole = Changed { path: first.path.clone(), before, after };
        match around.git.own(path) {
            Some(Own::Log | Own::Passing) => {}
            Some(Own::Object) => self.check(around, path, last),
            // Git writes its index also where it only looks.
            Some(Own::Index) if runs.windows(2).all(|two| is_looked_at(two[0].1, two[1].1)) => {
                self.check(around, path, &whole);
            }
            Some(Own::Index | Own::Sample | Own::State) | None => {
                // It may be as it was by now.
                if !matches!(around.back(path, &whole), Ok(None)) {
                    let reason = format!("{} was changed by somebody else meanwhile", whole.path);
                    self.reasons.push((path, reason));
                }
            }
        }
    }
}

/// Whether the same is staged where one change ended and the next began.
fn is_looked_at(one: &Changed, next: &Changed) -> bool {
    let sides = one.after.as_ref().zip(next.before.as_ref());
    sides.is_some_and(|(left, found)| stages_alike(left, found))
}
