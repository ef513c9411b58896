//! What is remembered beyond sessions, as tools and the survey use it.

use std::fmt;
use std::sync::Arc;

use quintet_kernel::port::Memory;

/// Memory, and how much of it is part of the prompt.
#[derive(Clone)]
pub struct MemorySettings {
    /// The notes.
    pub memory: Arc<dyn Memory>,
    /// The most tokens of memory in a prompt; 0 for none.
    pub tokens: u64,
    /// The folder of the notes in a workspace.
    pub folder: &'static str,
    /// Tokens of the whole workspace description; memory gets a proportional share of a smaller one.
    pub context_tokens: u64,
}

impl MemorySettings {
    /// The tokens of memory in a workspace description of so many tokens.
    pub(crate) fn part(&self, tokens: u64) -> u64 {
        let part =
            u128::from(tokens) * u128::from(self.tokens) / u128::from(self.context_tokens.max(1));
        u64::try_from(part).unwrap_or(u64::MAX).min(self.tokens).min(tokens)
    }
}

impl fmt::Debug for MemorySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySettings").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use quintet_testkit::memory_notes::MemoryNotes;

    use super::*;

    #[test]
    fn a_smaller_description_has_less_memory() {
        let recall = |tokens, context_tokens| MemorySettings {
            memory: Arc::new(MemoryNotes::default()),
            tokens,
            folder: "memory",
            context_tokens,
        };
        let usual = recall(2_000, 6_000);
        assert_eq!([6_000, 1_024, 0, u64::MAX].map(|all| usual.part(all)), [2_000, 341, 0, 2_000]);
        assert_eq!(recall(2_000, 2_000).part(1_024), 1_024);
        assert_eq!(recall(0, 0).part(1_024), 0);
    }
}
