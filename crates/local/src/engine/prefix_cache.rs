//! A cache on disk of the model's state after the beginning of a prompt that all sessions share, so that
//! neither a restart nor another session evaluates it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::token::LlamaToken;
use sha2::{Digest as _, Sha256};

use crate::weights::Weights;

/// A shorter prefix is evaluated faster than it is loaded.
const MIN_PREFIX_TOKENS: usize = 128;
/// The format of a state may change with the version of the library.
pub(super) const ENGINE: &str = "llama-cpp-2 0.1.160";
/// A larger state is not stored.
const PREFIX_BYTES_LIMIT: u64 = 256 * 1024 * 1024;
/// Number of states that are stored per model; the prefix changes with the tools.
const PREFIXES_PER_MODEL: usize = 2;

/// The stored states of one model.
#[derive(Debug)]
pub(super) struct PrefixCache {
    dir: PathBuf,
    weights: String,
    name: String,
}

impl PrefixCache {
    pub(super) fn new(models_dir: &Path, weights: &Weights) -> Self {
        Self {
            dir: models_dir.join("read"),
            weights: weights.file.sha256.clone(),
            name: weights.name.clone(),
        }
    }

    /// Loads a stored prefix into a slot. Returns the number of tokens in the slot then; `None` if
    /// there is no stored prefix, and the slot is unchanged.
    pub(super) fn take(
        &self,
        context: &mut LlamaContext<'_>,
        slot: usize,
        tokens: &[LlamaToken],
    ) -> Option<usize> {
        if tokens.len() < MIN_PREFIX_TOKENS {
            return None;
        }
        let path = self.find(tokens)?;
        if !is_complete(&path) {
            tracing::warn!("a stored prefix is damaged and is computed again");
            let _ = fs::remove_file(&path);
            return None;
        }
        let loaded = context.state_seq_load_file(&path, slot as i32, tokens.len());
        if loaded.is_ok_and(|(found, _)| found == tokens) {
            return Some(tokens.len());
        }
        tracing::warn!("a stored prefix cannot be used and is computed again");
        let _ = fs::remove_file(&path);
        let cleared = context.clear_kv_cache_seq(Some(slot as u32), None, None);
        cleared.ok().map(|_| 0)
    }

    /// Stores the prefix that a slot holds. A failure costs only time.
    pub(super) fn put(&self, context: &LlamaContext<'_>, slot: usize, tokens: &[LlamaToken]) {
        if tokens.len() < MIN_PREFIX_TOKENS || fs::create_dir_all(&self.dir).is_err() {
            return;
        }
        let draft = self.dir.join(format!("{}-{}.draft", self.name, std::process::id()));
        let saved = context.state_seq_save_file(&draft, slot as i32, tokens).is_ok();
        let small = draft.metadata().is_ok_and(|file| file.len() <= PREFIX_BYTES_LIMIT);
        let hash = Some(&draft).filter(|_| small).and_then(|draft| fs::read(draft).ok());
        let hash = hash.filter(|_| saved).map(|bytes| digest([bytes.as_slice()]));
        let path = hash.map(|hash| self.dir.join(format!("{}{hash}.kv", self.prefix(tokens))));
        if path.is_none_or(|path| fs::rename(&draft, path).is_err()) {
            let _ = fs::remove_file(&draft);
        }
        self.tidy();
    }

    fn find(&self, tokens: &[LlamaToken]) -> Option<PathBuf> {
        let prefix = self.prefix(tokens);
        let named = |path: &PathBuf| name(path).is_some_and(|name| name.starts_with(&prefix));
        self.files(".kv").into_iter().find(named)
    }

    /// The file name contains hashes of the model and the tokens, and then of the content.
    fn prefix(&self, tokens: &[LlamaToken]) -> String {
        let tokens: Vec<u8> = tokens.iter().flat_map(|token| token.0.to_le_bytes()).collect();
        format!("{}-{}-", self.name, digest([ENGINE.as_bytes(), self.weights.as_bytes(), &tokens]))
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let ours = |path: &PathBuf| {
            name(path).is_some_and(|name| name.starts_with(&self.name) && name.ends_with(ending))
        };
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(ours).collect()
    }

    fn tidy(&self) {
        let written = |path: &PathBuf| {
            path.metadata().and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
        };
        let mut files = self.files(".kv");
        files.sort_by_key(|path| std::cmp::Reverse(written(path)));
        // An incomplete file is left behind if the daemon was killed. If another daemon is just
        // writing it, that one only loses time.
        let stale = files.into_iter().skip(PREFIXES_PER_MODEL).chain(self.files(".draft"));
        stale.for_each(|path| drop(fs::remove_file(path)));
    }
}

/// True if a file is complete. The library does not check this and aborts the process on a
/// truncated file.
fn is_complete(path: &Path) -> bool {
    let hash = fs::read(path).map(|bytes| digest([bytes.as_slice()]));
    hash.is_ok_and(|hash| name(path).is_some_and(|name| name.ends_with(&format!("-{hash}.kv"))))
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

pub(super) fn digest<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hex::encode(&hash.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::ENGINE;

    #[test]
    fn the_version_matches_the_dependency() {
        let (name, version) = ENGINE.split_once(' ').unwrap();
        let pinned = format!("{name} = {{ version = \"={version}\"");
        assert!(include_str!("../../../../Cargo.toml").contains(&pinned), "{pinned}");
    }
}
