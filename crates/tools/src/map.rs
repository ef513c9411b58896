//! The symbols of a workspace, those that matter most first.
//!
//! Files are parsed by tree-sitter ([`parse`]), their trees read by the rows of their language
//! ([`languages`], [`rules`], [`outline`]); what was read is remembered for as long as a file does
//! not change ([`cache`]). The symbols are then weighed ([`rank`]) and shown ([`render`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blocking::Flag;
use crate::walk::{Next, Walk};

mod cache;
mod gather;
mod languages;
mod outline;
mod parse;
mod rank;
mod render;
mod rules;

use cache::Cache;
use outline::Outline;
use rank::Ranked;

/// Directories of things that were fetched or made.
pub(crate) const SKIPPED: [&str; 5] = ["node_modules", "vendor", "dist", "build", "target"];
/// How many files are looked at.
pub(crate) const MOST_FILES: usize = 50_000;

/// Draws maps, and remembers what it read for the next one.
#[derive(Debug, Default)]
pub(crate) struct Mapper {
    cache: Cache,
}

/// How a map is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pub(crate) max_symbols: usize,
    pub(crate) max_tokens: usize,
    /// Whether it says in which lines symbols are.
    pub(crate) lines: bool,
}

/// The symbols of a workspace.
#[derive(Debug)]
pub(crate) struct Map {
    files: Vec<PathBuf>,
    outlines: Vec<Arc<Outline>>,
    ranked: Vec<Ranked>,
}

impl Mapper {
    /// Walks through a workspace and draws its map.
    pub(crate) fn look(&self, workspace: &Path, flag: &Flag) -> Result<Map, String> {
        let walk = Walk { workspace, within: None, skipped: &SKIPPED, depth: None };
        let mut files = Vec::new();
        walk.each(flag, |found| {
            if found.is_file && languages::knows(&found.path) {
                files.push(found.path);
            }
            Ok(if files.len() < MOST_FILES { Next::Continue } else { Next::Stop })
        })?;
        Ok(self.draw(workspace, &files, flag))
    }

    /// Draws the map of those of the files that are written in a language that is known.
    pub(crate) fn draw(&self, workspace: &Path, files: &[PathBuf], flag: &Flag) -> Map {
        let files: Vec<_> = files.iter().filter(|path| languages::knows(path)).cloned().collect();
        self.cache.begin();
        let outlines = gather::outlines(workspace, &files, &self.cache, flag);
        let ranked = rank::rank(&outlines);
        Map { files, outlines, ranked }
    }
}

impl Map {
    /// The map of a part of the workspace; what is used elsewhere still counts.
    pub(crate) fn within(mut self, path: &Path) -> Self {
        self.ranked.retain(|ranked| self.files[ranked.file].starts_with(path));
        self
    }

    /// Whether it shows nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranked.is_empty()
    }

    /// The map as text: what matters most, as far as there is room.
    pub(crate) fn text(&self, form: Form) -> String {
        render::text(self, form)
    }
}
