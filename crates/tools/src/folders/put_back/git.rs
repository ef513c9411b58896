//! Git's own files, some of which are turned back by other rules.
//!
//! - Objects that came stay: commits made since may share them, and without a branch that leads to them
//!   they are nobody's. Those that went or were written anew come back. In a repository that is new
//!   itself they go with it.
//! - What is staged counts, not what git remembers of the times of files.
//! - Logs and what is there for a moment are turned back if they are as they were left, and are
//!   otherwise in nobody's way.
//! - The rest is like any other file.

use std::path::Path;

use quintet_kernel::change::git::Own;
use quintet_kernel::port::Changed;

use super::Plan;
use super::around::Around;
use super::back::Stuck;
use crate::beneath::Place;
use crate::repository::newest;
use crate::show;

impl Around<'_> {
    /// Whether a change is not to be turned back.
    pub(super) fn stays(&self, path: &Path, changed: &Changed) -> bool {
        let is_object = self.git.own(path) == Some(Own::Object);
        is_object && changed.before.is_none() && !self.is_in_a_new_repository(path)
    }

    /// Whether a file may be left as it is.
    pub(super) fn forgives(&self, path: &Path, stuck: &Stuck) -> bool {
        match (self.git.own(path), stuck) {
            (Some(Own::Log | Own::Passing), _) | (Some(Own::Object), Stuck::Changed(_)) => true,
            (Some(Own::Object), Stuck::Unseen(_) | Stuck::Lost(_)) => false,
            (Some(Own::Index | Own::Sample | Own::State) | None, _) => false,
        }
    }

    /// Whether something new needs the repository that it is in, and that would go.
    pub(super) fn needs(&self, new: &Path) -> bool {
        let counts = matches!(self.git.own(new), Some(Own::State | Own::Index));
        counts && self.is_in_a_new_repository(new)
    }

    /// What it means that a file was changed, if that can be said.
    pub(super) fn how(&self, path: &Path) -> String {
        if self.git.own(path) == Some(Own::Index) {
            return ": something else is staged".to_owned();
        }
        let Some(folder) = self.git.around(path) else { return String::new() };
        let name = path.strip_prefix(folder).unwrap_or(path);
        let of = |kind: &str| Some(show::path(name.strip_prefix(kind).ok()?));
        match (of("refs/heads"), of("refs/tags")) {
            _ if name.ends_with("HEAD") && !name.starts_with("refs") => {
                ": something else is checked out".to_owned()
            }
            (Some(branch), _) => format!(": the branch {branch} moved"),
            (None, Some(tag)) => format!(": the tag {tag} moved"),
            (None, None) => String::new(),
        }
    }
}

impl Plan<'_> {
    /// Makes what is staged look as old as it is. By the time of its index git tells which files may
    /// have changed in the very moment in which it looked at them, and looks again.
    pub(super) fn date_indexes(&self, around: &Around<'_>) {
        for step in &self.steps {
            let is_index = around.git.own(step.path) == Some(Own::Index);
            if !is_index || step.to.is_none() {
                continue;
            }
            let dated = Place::find(around.root, step.path).and_then(|place| {
                let newest = place.read().ok().and_then(|index| newest(&index.bytes));
                // Where that is not known, git is to look at everything again.
                place.date(newest.unwrap_or((1, 0)))
            });
            if let Err(error) = dated {
                tracing::warn!(%error, "git may not see what was changed right after it looked");
            }
        }
    }
}
