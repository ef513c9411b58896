//! Works out what a patch does to the workspace. Nothing is written here.

use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use super::apply::{Applied, apply};
use super::{Action, Section, parse};
use crate::buffers::Unsaved;
use crate::change::Change;
use crate::confined_fs::{ConfinedPath, FileData, PathIdentity};
use crate::show;

/// What a patch leads to.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// What to do, if nothing failed.
    pub(crate) changes: Vec<Change>,
    /// What was found out of every file and hunk.
    pub(crate) report: String,
    /// How many hunks and files do not fit.
    pub(crate) failed: usize,
    /// The files seen so far, with their names.
    seen: Vec<(PathIdentity, PathBuf)>,
    /// The files as an editor has them.
    unsaved: Unsaved,
}

/// Reads a patch and checks all of it against the workspace.
pub(crate) fn plan(root: &Path, patch: &str, unsaved: &Unsaved) -> Result<Plan, String> {
    let sections = parse(patch)?;
    let mut plan = Plan { unsaved: unsaved.clone(), ..Plan::default() };
    for section in sections {
        let section = Section { path: plain(&section.path), ..section };
        if let Err(why) = plan.add(root, &section) {
            plan.failed += 1;
            let _infallible = writeln!(plan.report, "{}: {why}", show::path(&section.path));
        }
    }
    Ok(plan)
}

impl Plan {
    fn add(&mut self, root: &Path, section: &Section) -> Result<(), String> {
        self.name(root, &section.path)?;
        let before = self.current(root, &section.path)?;
        match (&section.action, before) {
            (Action::Create, None) => self.create(section),
            (Action::Create, Some(_)) => Err("to be created, but it exists already".to_owned()),
            (_, None) => Err("no such file".to_owned()),
            (_, Some(before)) if before.bytes.contains(&0) && !section.hunks.is_empty() => {
                Err("binary file: only text can be patched".to_owned())
            }
            (Action::Delete, Some(before)) => self.delete(section, before),
            (Action::Update, Some(before)) => self.update(section, before),
            (Action::Move(to), Some(before)) => self.rename(root, section, before, &plain(to)),
        }
    }

    fn create(&mut self, section: &Section) -> Result<(), String> {
        self.once(&section.path)?;
        let applied = apply(&[], &section.hunks);
        if section.hunks.iter().any(|hunk| hunk.old_len() > 0) {
            return Err("a new file has no lines to keep or remove".to_owned());
        }
        let after = FileData::file(applied.bytes, section.mode);
        self.changes.push(Change::of(section.path.clone(), None, Some(after)));
        self.say(&format!("A {}", show::path(&section.path)), &[]);
        Ok(())
    }

    fn delete(&mut self, section: &Section, before: FileData) -> Result<(), String> {
        self.once(&section.path)?;
        let applied = apply(&before.bytes, &section.hunks);
        self.say(&format!("D {}", show::path(&section.path)), &applied.notes);
        let fits = applied.notes.iter().all(Result::is_ok);
        if fits && !section.hunks.is_empty() && !applied.bytes.is_empty() {
            return Err("to be deleted, but it has more lines than the patch removes".to_owned());
        }
        self.changes.push(Change::of(section.path.clone(), Some(before), None));
        Ok(())
    }

    fn update(&mut self, section: &Section, before: FileData) -> Result<(), String> {
        let Applied { bytes, notes } = apply(&before.bytes, &section.hunks);
        self.say(&format!("M {}", show::path(&section.path)), &notes);
        let after = FileData::file(bytes, section.mode.or(before.mode));
        // A file may occur twice; the second change continues from the first.
        match self.changes.iter_mut().find(|change| change.path == section.path) {
            Some(change) => change.after = Some(after),
            None => self.changes.push(Change::of(section.path.clone(), Some(before), Some(after))),
        }
        Ok(())
    }

    fn rename(
        &mut self,
        root: &Path,
        section: &Section,
        before: FileData,
        to: &Path,
    ) -> Result<(), String> {
        if to == section.path {
            return self.update(section, before);
        }
        self.name(root, to)?;
        self.once(&section.path)?;
        self.once(to)?;
        if self.current(root, to)?.is_some() {
            return Err(format!("to be moved to {}, which exists already", show::path(to)));
        }
        let Applied { bytes, notes } = apply(&before.bytes, &section.hunks);
        let (from, shown) = (show::path(&section.path), show::path(to));
        self.say(&format!("R {from} -> {shown}"), &notes);
        let after = FileData::file(bytes, section.mode.or(before.mode));
        let change = Change::of(to.to_owned(), Some(before), Some(after));
        self.changes.push(Change { from: Some(section.path.clone()), ..change });
        Ok(())
    }

    /// A file as it will be after what was planned so far.
    fn current(&self, root: &Path, path: &Path) -> Result<Option<FileData>, String> {
        if let Some(change) = self.changes.iter().find(|change| change.path == path) {
            return Ok(change.after.clone());
        }
        if self.changes.iter().any(|change| change.from.as_deref() == Some(path)) {
            return Ok(None);
        }
        self.unsaved.read(root, path).map_err(|error| error.to_string())
    }

    /// Sees to it that one file does not come up by two names, of which each would undo the other.
    fn name(&mut self, root: &Path, path: &Path) -> Result<(), String> {
        // A file without a directory yet is identified only by its name.
        let Ok(identity) = ConfinedPath::find(root, path).and_then(|place| place.identity()) else {
            return Ok(());
        };
        match self.seen.iter().find(|(seen, _)| *seen == identity) {
            Some((_, name)) if name != path => {
                Err(format!("the patch has another name for this file, {}", show::path(name)))
            }
            Some(_) => Ok(()),
            None => {
                self.seen.push((identity, path.to_owned()));
                Ok(())
            }
        }
    }

    fn once(&self, path: &Path) -> Result<(), String> {
        let known = |change: &Change| change.path == path || change.from.as_deref() == Some(path);
        if self.changes.iter().any(known) {
            return Err(format!("the patch changes {} more than once", show::path(path)));
        }
        Ok(())
    }

    fn say(&mut self, head: &str, notes: &[Result<String, String>]) {
        let _infallible = writeln!(self.report, "{head}");
        for (index, note) in notes.iter().enumerate() {
            let number = index + 1;
            let _infallible = match note {
                Ok(note) => writeln!(self.report, "  hunk {number}: applies at {note}"),
                Err(why) => writeln!(self.report, "  hunk {number}: {why}"),
            };
        }
        self.failed += notes.iter().filter(|note| note.is_err()).count();
    }
}

/// A path without `.`, so that the same file has the same name.
fn plain(path: &Path) -> PathBuf {
    let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if plain.as_os_str().is_empty() { path.to_owned() } else { plain }
}
