//! Does what was planned, all of it or nothing.
//!
//! Somebody may be quicker: each file is looked at once more right before it is replaced or removed, and
//! if it is another by then, what was done so far is undone.

use std::path::Path;

use quintet_kernel::port::Content;

use super::Step;
use super::around::Around;
use super::locks::Locks;
use crate::beneath::{Existing, Place};
use crate::folders::now::now;
use crate::show;

impl Around<'_> {
    /// Does all of it or, if something cannot be done, nothing.
    pub(super) fn carry_out(&self, steps: &[Step<'_>], locks: &mut Locks) -> Result<(), String> {
        for (done, step) in steps.iter().enumerate() {
            locks.give_way(step);
            if let Err(error) = self.make(step.path, step.from.as_ref(), step.to.as_ref()) {
                return Err(self.roll_back(&steps[..done], &error));
            }
        }
        Ok(())
    }

    /// Undoes what was done, and says what came of it.
    fn roll_back(&self, done: &[Step<'_>], error: &str) -> String {
        let stuck: Vec<_> = done
            .iter()
            .rev()
            .filter(|it| self.make(it.path, it.to.as_ref(), it.from.as_ref()).is_err())
            .map(|step| show::path(step.path))
            .collect();
        if stuck.is_empty() {
            format!("nothing was changed: {error}")
        } else {
            format!("{error}; these files stay changed: {}", stuck.join(", "))
        }
    }

    /// Makes one thing into another, if it is still there.
    fn make(
        &self,
        path: &Path,
        from: Option<&Content>,
        to: Option<&Content>,
    ) -> Result<(), String> {
        if let Some(from) = from {
            self.expect(path, from)?;
        }
        let find = || Place::find(self.root, path);
        let made = match (from, to) {
            (None, None) => Ok(()),
            (Some(from), None) => find().and_then(|place| place.remove(from.shape)),
            (None, Some(to)) => {
                Place::make(self.root, path).and_then(|place| place.restore(to, Existing::Refuse))
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

    /// Somebody may have changed it since everything was looked at.
    fn expect(&self, path: &Path, from: &Content) -> Result<(), String> {
        let now = now(self.root, path)?;
        let is_same = self.is(path, &now, Some(from)).map_err(|stuck| stuck.to_string())?;
        let changed = || format!("{} was changed meanwhile{}", show::path(path), self.how(path));
        if is_same { Ok(()) } else { Err(changed()) }
    }
}
