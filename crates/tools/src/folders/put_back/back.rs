//! What a file is to be turned from and into, or why it cannot be.

use std::path::Path;

use quintet_kernel::change::Shape;
use quintet_kernel::change::git::Own;
use quintet_kernel::port::{Body, Changed, Content};

use super::around::Around;
use super::has;
use crate::folders::now::{Now, now};

/// What is there, and what is to be there instead.
pub(super) type Exchange = (Option<Content>, Option<Content>);

/// Why a file cannot be turned back.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stuck {
    /// Somebody changed it.
    #[error("{0}")]
    Changed(String),
    /// It cannot be looked at, so nobody knows whether there is anything.
    #[error("{0}")]
    Unseen(String),
    /// Nobody could.
    #[error("{0}")]
    Lost(String),
}

impl Around<'_> {
    /// What a file is to be turned from and into; nothing if it is as it was.
    pub(super) fn back(&self, path: &Path, changed: &Changed) -> Result<Option<Exchange>, Stuck> {
        let Changed { path: name, before, after } = changed;
        let replaced = self.is_behind_a_link(path);
        let now = if replaced { Ok(Now::default()) } else { now(self.root, path) };
        let now = now.map_err(Stuck::Unseen)?;
        // A folder is as good as nothing where there was nothing, and one that is there again as good as
        // the one that was: what is in it has its own changes.
        let left = now.is(Shape::Folder) && before.is_none() && !has(after.as_ref(), Shape::Folder);
        let again = now.is(Shape::Folder) && has(before.as_ref(), Shape::Folder) && after.is_none();
        if !now.is_there() && self.is_packed(path, after.as_ref()) {
            return Err(Stuck::Changed(format!("{name} was packed by git since")));
        }
        let is = |side: &Option<Content>| self.is(path, &now, side.as_ref());
        if left || again || is(before)? {
            return Ok(None);
        }
        if let Some(why) = lost(changed) {
            return Err(Stuck::Lost(why));
        }
        if !is(after)? {
            return Err(Stuck::Changed(match (after, now.is_there()) {
                (Some(_), false) => format!("{name} was deleted since"),
                (Some(_), true) => format!("{name} was changed since{}", self.how(path)),
                (None, _) => format!("{name} is there again"),
            }));
        }
        let with_mode = |side: &Option<Content>| {
            let mut side = side.clone()?;
            side.mode = side.mode.or(now.mode());
            Some(side)
        };
        Ok(Some((with_mode(after), with_mode(before))))
    }

    /// Whether this is what was recorded. What git has staged counts by what it says.
    pub(super) fn is(&self, path: &Path, now: &Now, then: Option<&Content>) -> Result<bool, Stuck> {
        if now.matches(then).map_err(Stuck::Changed)? {
            return Ok(true);
        }
        Ok(self.git.own(path) == Some(Own::Index) && then.is_some_and(|then| now.stages(then)))
    }
}

/// Why nobody could make a file again.
fn lost(Changed { path, before, after }: &Changed) -> Option<String> {
    let unkept = |side: &Content| side.body.is_none() && side.shape.has_content();
    let gone = |side: &Content| matches!(side.body, Some(Body::Hash(_)));
    if [before, after].into_iter().flatten().any(unkept) || before.as_ref().is_some_and(gone) {
        return Some(format!("what was in {path} was not kept"));
    }
    let special = has(before.as_ref(), Shape::Socket) || has(before.as_ref(), Shape::Other);
    special.then(|| format!("{path} was not a file, and cannot be made again"))
}
