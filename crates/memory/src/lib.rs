//! Long-term memory: Markdown notes in the workspace, and search in the messages of all sessions.
//!
//! [`MarkdownMemory`] appends notes to `memory/MEMORY.md` and to a file for each day. The files are the source
//! of truth and people may edit them; their search index is a cache elsewhere that notices changes, may be
//! deleted at any time and is built again. [`MessageIndex`] holds a copy of the messages in the journal: a
//! [`Collector`] picks them out of a session's events, a [`SessionUpdate`] adds them. Both are searched by words
//! (SQLite FTS5) and, with an embedder, by meaning; the two rankings are fused.
//!
//! ```text
//! memory_write → append (fsync) → *.md → fingerprints → index ┐
//!                                                           ├─ words + vectors → fusion → excerpts
//! journal → Collector → SessionUpdate → MessageIndex ────────┘
//! ```

mod append;
mod bootstrap;
mod confined_fs;
mod embedding;
mod excerpt;
mod fusion;
mod index;
mod markdown_memory;
mod messages;
mod note_vectors;
mod passages;
mod paths;
mod pending_append;
mod read;
mod retention;
mod truncate;
mod vectors;
mod words;

pub use markdown_memory::MarkdownMemory;
pub use messages::{Collector, IndexedMessage, MessageIndex, SessionUpdate};
pub use paths::FOLDER;
pub use retention::OnExpiry;

use std::path::PathBuf;

/// Settings of [`MarkdownMemory`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of the search index, which may be deleted; it is created if it does not exist.
    pub index: PathBuf,
    /// Days for which daily notes are kept; 0 keeps them forever.
    pub keep_days: u64,
    /// What happens to daily notes after that.
    pub expired: OnExpiry,
    /// Size of `memory/MEMORY.md` in bytes from which a write returns a warning; 0 for no warning.
    pub soft_limit_bytes: u64,
}
