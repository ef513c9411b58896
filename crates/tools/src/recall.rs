//! What is remembered beyond sessions, as tools and the survey use it.

use std::fmt;
use std::sync::Arc;

use quintet_kernel::port::Memory;

/// Memory, and how much of it a model is told from the start.
#[derive(Clone)]
pub struct Recall {
    /// Where it is.
    pub memory: Arc<dyn Memory>,
    /// At most so many tokens; nothing if 0.
    pub tokens: u64,
}

impl fmt::Debug for Recall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recall").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}
