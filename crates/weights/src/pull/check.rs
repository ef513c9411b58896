//! Checks whether the files of a model are complete.

use std::path::Path;

use super::part::{part_of, sha256};
use crate::{Model, WeightFile};

/// The state of a model's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No file exists.
    Absent,
    /// This many bytes are downloaded; the next download resumes there.
    Begun(u64),
    /// The file has the wrong hash: truncated, damaged or replaced.
    Wrong(String),
    /// All files have the right hash.
    Complete,
}

/// True if all files exist with the right sizes. Does not read them.
pub fn is_present(model: Model<'_>, dir: &Path) -> bool {
    model.files.iter().all(|file| has_size(&dir.join(&file.name), file))
}

/// Hashes the files of a model, which takes seconds.
pub fn check(model: Model<'_>, dir: &Path) -> State {
    let (mut bytes, mut complete) = (0, true);
    for file in model.files {
        let path = dir.join(&file.name);
        if has_size(&path, file) && sha256(&path).is_ok_and(|hash| hash == file.sha256) {
            bytes += file.size;
        } else if path.exists() {
            return State::Wrong(file.name.clone());
        } else {
            complete = false;
            bytes += size(&part_of(&path)).unwrap_or(0);
        }
    }
    match (complete, bytes) {
        (true, _) => State::Complete,
        (false, 0) => State::Absent,
        (false, bytes) => State::Begun(bytes),
    }
}

pub(super) fn has_size(path: &Path, file: &WeightFile) -> bool {
    size(path) == Some(file.size)
}

fn size(path: &Path) -> Option<u64> {
    path.metadata().map(|file| file.len()).ok()
}
