//! The symbols of a workspace, most important first.
//!
//! ```text
//! files → skim (names and uses) → rank (weights) → choose (files worth parsing) → tree-sitter → outline → render
//! ```
//!
//! [`skim`] is fast and gives each name a weight ([`rank`]). Files that seem to define the most important names are
//! parsed by tree-sitter, without function bodies ([`bodies`]), until no file can add anything more important
//! ([`choose`]). The tables of each language ([`languages`], [`rules`], [`outline`]) extract its symbols, and
//! [`render`] prints the most important ones. Results are cached until a file changes ([`cache`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blocking::CancelFlag;
use crate::tokens;
use crate::walk::{Next, Walk};

mod bodies;
mod cache;
mod choose;
mod gather;
mod languages;
mod name;
mod outline;
mod parse;
mod rank;
mod render;
mod rules;
mod skim;

use cache::Cache;
use choose::{Skimmed, choose};
use gather::Field;
use outline::{Outline, Symbol};

/// Directories of things that were fetched or made.
const SKIPPED: [&str; 5] = ["node_modules", "vendor", "dist", "build", "target"];
/// The most files that are scanned.
pub(crate) const FILES_LIMIT: usize = 50_000;
const DEPTH_LIMIT: usize = 30;
/// What a symbol takes of a map at least, about.
const LINE: usize = 16;

/// Draws maps, and remembers what it read for the next one.
#[derive(Debug, Default)]
pub(crate) struct Mapper {
    cache: Cache,
}

/// How a map is shown.
#[derive(Clone, Debug)]
pub(crate) struct MapStyle {
    /// Only what is beneath this path; everything if it is empty. What is used elsewhere counts.
    pub(crate) within: PathBuf,
    pub(crate) max_symbols: usize,
    pub(crate) max_tokens: usize,
    /// True if the lines of symbols are shown.
    pub(crate) lines: bool,
}

/// A symbol and its weight.
#[derive(Debug)]
struct Ranked {
    /// Which file it is in.
    file: usize,
    outline: Arc<Outline>,
    /// Which of the file's symbols it is.
    place: usize,
    weight: f64,
}

impl Ranked {
    fn symbol(&self) -> &Symbol {
        &self.outline.symbols[self.place]
    }
}

impl Mapper {
    /// Draws the map of a workspace from those of its files that are written in a language that is
    /// known; nothing if they define nothing.
    pub(crate) fn draw(
        &self,
        workspace: &Path,
        files: &[PathBuf],
        form: &MapStyle,
        flag: &CancelFlag,
    ) -> String {
        let files: Vec<_> = files.iter().filter(|path| languages::knows(path)).cloned().collect();
        let Ok(root) = workspace.canonicalize() else { return String::new() };
        self.cache.begin();
        let listing = Field { root: &root, cache: &self.cache, flag };
        let skimmed = Skimmed { files: &files, skims: &listing.skims(&files) };
        let enough = form.max_symbols.min(tokens::bytes(form.max_tokens) / LINE);
        let choice = choose(listing, &skimmed, &form.within, enough);
        render::text(&files, &choice, form)
    }
}

/// What a walk through a workspace found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkspaceFiles {
    /// The files that may be of interest.
    pub(crate) files: Vec<PathBuf>,
    /// Every folder that was looked into, the workspace itself included.
    pub(crate) folders: Vec<PathBuf>,
}

/// The files of a workspace that may be of interest.
pub(crate) fn files(workspace: &Path, flag: &CancelFlag) -> Result<Vec<PathBuf>, String> {
    listing(workspace, flag).map(|listing| listing.files)
}

/// The files of a workspace that may be of interest, and the folders they were looked for in.
pub(crate) fn listing(workspace: &Path, flag: &CancelFlag) -> Result<WorkspaceFiles, String> {
    let walk = Walk { workspace, within: None, skipped: &SKIPPED, depth: Some(DEPTH_LIMIT) };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let enter = |folder: &Path| folders.push(folder.to_owned());
    walk.each_and_folders(flag, enter, |found| {
        files.push(found.path);
        Ok(if files.len() < FILES_LIMIT { Next::Continue } else { Next::Stop })
    })?;
    Ok(WorkspaceFiles { files, folders })
}
