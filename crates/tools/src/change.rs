//! Changes to files: their descriptions, their risk, and how they are made or undone.

use std::path::{Path, PathBuf};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::FileContent;

use crate::confined_fs::{self, ConfinedPath, Existing, FileData};
use crate::diff::FileDiff;
use crate::show;

mod assess;

pub(crate) use assess::{assess, inapplicable};

/// What becomes of one file.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    /// Where it was before, if it moves.
    pub(crate) from: Option<PathBuf>,
    pub(crate) before: Option<FileData>,
    pub(crate) after: Option<FileData>,
    /// True if the file is replaced without reference to its old content.
    pub(crate) blind: bool,
}

impl Change {
    /// A change of a file that stays where it is.
    pub(crate) fn of(path: PathBuf, before: Option<FileData>, after: Option<FileData>) -> Self {
        Self { path, from: None, before, after, blind: false }
    }

    /// A one-line description.
    pub(crate) fn describe(&self) -> String {
        let path = show::path(&self.path);
        match (&self.from, &self.before, &self.after) {
            (Some(from), _, _) => format!("moves {} to {path}", show::path(from)),
            (None, None, _) => format!("creates {path}"),
            (None, Some(_), None) => format!("deletes {path}"),
            (None, Some(_), Some(_)) if self.blind => format!("overwrites {path}"),
            (None, Some(_), Some(_)) => format!("changes {path}"),
        }
    }

    /// The unified diff, in git's style.
    pub(crate) fn diff(&self) -> String {
        let [before, after] =
            [&self.before, &self.after].map(|it| it.clone().map(FileContent::from));
        let (before, after, path) = (before.as_ref(), after.as_ref(), self.path.as_path());
        FileDiff { old_path: self.from.as_deref().unwrap_or(path), path, before, after }.preview()
    }

    /// The files it names.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.path), self.from.as_ref()].into_iter().flatten().map(PathBuf::as_path)
    }

    /// The files whose content changes, each with its old content.
    pub(crate) fn sides(&self) -> Vec<(&Path, Option<&FileData>)> {
        match &self.from {
            None => vec![(&self.path, self.before.as_ref())],
            Some(from) => vec![(from, self.before.as_ref()), (&self.path, None)],
        }
    }

    /// The current path of the file, if it exists.
    fn there(&self) -> Option<&Path> {
        let path = self.from.as_ref().unwrap_or(&self.path);
        self.before.is_some().then_some(path.as_path())
    }

    /// The file that loses content which the change itself does not contain.
    fn loses(&self) -> Option<&Path> {
        let loses = self.before.is_some() && (self.blind || self.after.is_none());
        loses.then_some(self.path.as_path())
    }

    fn is_delicate(&self) -> bool {
        self.paths().any(|path| path.iter().any(|part| part == ".git"))
    }

    fn undone(&self) -> Self {
        Self {
            path: self.from.clone().unwrap_or_else(|| self.path.clone()),
            from: self.from.as_ref().map(|_| self.path.clone()),
            before: self.after.clone(),
            after: self.before.clone(),
            blind: false,
        }
    }

    fn make(&self, root: &Path) -> Result<(), confined_fs::PathError> {
        let there = self.before.as_ref().map_or(FileKind::File, |before| before.shape);
        let Some(after) = &self.after else {
            return ConfinedPath::find(root, &self.path)?.remove(there);
        };
        let is_new = self.before.is_none() || self.from.is_some();
        let existing = if is_new { Existing::Refuse } else { Existing::Replace(there) };
        ConfinedPath::make(root, &self.path)?.write(after, existing)?;
        let Some(from) = &self.from else { return Ok(()) };
        let removed = ConfinedPath::find(root, from).and_then(|place| place.remove(there));
        if removed.is_err() {
            // A file that cannot leave its old place is not to be in two.
            let _still_there =
                ConfinedPath::find(root, &self.path).and_then(|place| place.remove(after.shape));
        }
        removed
    }
}

/// Makes all of them or, if one cannot be made, none.
pub(crate) fn make(root: &Path, changes: &[Change]) -> Result<(), String> {
    for (made, change) in changes.iter().enumerate() {
        if let Err(error) = change.make(root) {
            let stuck: Vec<_> = changes[..made]
                .iter()
                .rev()
                .filter(|change| change.undone().make(root).is_err())
                .map(|change| show::path(&change.path))
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
