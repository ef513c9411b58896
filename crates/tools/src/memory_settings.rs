//! What is remembered beyond sessions, as tools and the survey use it.

use std::fmt;
use std::sync::Arc;

use quintet_kernel::port::Memory;

/// Memory, and how much of it a model is told from the start.
#[derive(Clone)]
pub struct MemorySettings {
    /// Where it is.
    pub memory: Arc<dyn Memory>,
    /// At most so many tokens; nothing if 0.
    pub tokens: u64,
    /// The folder of a workspace that it is kept in.
    pub folder: &'static str,
    /// Of so many for everything a model is told then. One that is told less is told less of this, too.
    pub of: u64,
}

impl MemorySettings {
    /// How much of it a model is told that is told so much in all.
    pub(crate) fn part(&self, tokens: u64) -> u64 {
        let part = u128::from(tokens) * u128::from(self.tokens) / u128::from(self.of.max(1));
        u64::try_from(part).unwrap_or(u64::MAX).min(self.tokens).min(tokens)
    }
}

impl fmt::Debug for MemorySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recall").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use quintet_testkit::memory_notes::MemoryNotes;

    use super::*;

    #[test]
    fn who_is_told_less_is_told_less_of_it() {
        let recall = |tokens, of| MemorySettings {
            memory: Arc::new(MemoryNotes::default()),
            tokens,
            folder: "memory",
            of,
        };
        let usual = recall(2_000, 6_000);
        assert_eq!([6_000, 1_024, 0, u64::MAX].map(|all| usual.part(all)), [2_000, 341, 0, 2_000]);
        assert_eq!(recall(2_000, 2_000).part(1_024), 1_024);
        assert_eq!(recall(0, 0).part(1_024), 0);
    }
}
