//! Whether weights are whole.

use std::path::Path;

use super::part::sha256;
use crate::weights::Weights;

/// How the file of a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is not there.
    Absent,
    /// So many bytes of it are; fetching goes on from there.
    Begun(u64),
    /// It is not what was published: cut, damaged or something else.
    Wrong,
    /// It is what was published.
    Whole,
}

/// Looks at a model's file. Reads all of it, so it takes seconds.
pub fn check(weights: &Weights, dir: &Path) -> State {
    let path = dir.join(weights.file());
    let size = |path: &Path| path.metadata().map(|file| file.len()).ok();
    match size(&path) {
        Some(size) if size != weights.size => State::Wrong,
        Some(_) => match sha256(&path) {
            Ok(hash) if hash == weights.sha256 => State::Whole,
            _ => State::Wrong,
        },
        None => match size(&dir.join(format!("{}.part", weights.file()))) {
            Some(bytes) => State::Begun(bytes),
            None => State::Absent,
        },
    }
}
