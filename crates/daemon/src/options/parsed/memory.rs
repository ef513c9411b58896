//! The options of memory.

use std::path::{Path, PathBuf};

use anyhow::Result;
use quintet_memory::{OnExpiry, Settings};

use super::choice;
use crate::options::layers::Layers;

/// The settings of memory.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) settings: Settings,
    /// Tokens of memory in the system prompt.
    pub(crate) tokens: u64,
    /// True if the facts of summaries are written to memory.
    pub(crate) save: bool,
}

pub(super) fn parse(layers: &Layers, data_dir: &Path) -> Result<Option<Memory>> {
    let number = |key: &str| layers.number(key).unwrap_or_default();
    let index = layers.str("memory.index").filter(|folder| !folder.is_empty());
    let settings = Settings {
        index: index.map_or_else(|| data_dir.join("cache/memory"), PathBuf::from),
        keep_days: number("memory.keep_days"),
        expired: choice(
            layers,
            "memory.expired",
            &[("archive", OnExpiry::Archive), ("remove", OnExpiry::Remove)],
        )?,
        soft_limit_bytes: number("memory.soft_limit_bytes"),
    };
    let tokens = number("memory.tokens");
    let save = layers.flag("memory.save_before_compaction").unwrap_or(true);
    let enabled = layers.flag("memory.enabled").unwrap_or(true);
    Ok(enabled.then_some(Memory { settings, tokens, save }))
}
