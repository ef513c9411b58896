//! Folders that builds fill: one that was built into since is left as it is.
//!
//! What is in them can be made anew, and is, by every build. An undo that was refused because of them
//! would be of no use after the next build; one that took half of them back would leave the other half
//! to be taken for up to date.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;

use super::Plan;
use crate::snapshot::is_made;

impl Plan<'_> {
    /// Leaves out what is in such folders, where something in them is neither as it was nor as it was
    /// left.
    pub(super) fn leave_builds(&mut self, root: &Path) {
        let folders = self.reasons.iter().filter_map(|(path, _)| folder(root, path));
        let folders: BTreeSet<PathBuf> = folders.collect();
        let is_left = |path: &Path| path.ancestors().any(|folder| folders.contains(folder));
        self.reasons.retain(|(path, _)| !is_left(path));
        self.steps.retain(|step| !is_left(step.path));
    }
}

/// The outermost folder around a path, or itself, that builds fill and git ignores.
pub(crate) fn folder(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut around: Vec<_> = path.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
    around.reverse();
    around.into_iter().find(|it| is_made(it) && is_ignored(root, it)).map(Path::to_owned)
}

/// Whether git ignores a folder, by the rules of the folders around it.
fn is_ignored(root: &Path, folder: &Path) -> bool {
    let folder = root.join(folder);
    let rules = folder.ancestors().skip(1).map(|above| above.join(".gitignore"));
    let mut rules = rules.filter(|file| file.is_file()).map(|file| Gitignore::new(file).0);
    let verdict = rules.find_map(|rules| {
        let matched = rules.matched_path_or_any_parents(&folder, true);
        (!matched.is_none()).then(|| matched.is_ignore())
    });
    verdict.unwrap_or(false)
}
