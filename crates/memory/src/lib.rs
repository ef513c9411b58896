//! Memory as Markdown files in the workspace (`memory/MEMORY.md` and a file for each day), and search in
//! the messages of all sessions.
//!
//! The files are the truth and people may edit them. The index that they are searched by is a cache in
//! another place: it notices what changed, may be deleted at any time and is built again by itself. The
//! index of messages ([`MessageIndex`]) is a copy of what the journal has. Both are searched by words
//! (SQLite FTS5) and, where there is an embedder, by meaning; the two rankings are fused.

mod append;
mod beneath;
mod bootstrap;
mod cut;
mod excerpt;
mod fusion;
mod index;
mod meaning;
mod messages;
mod name;
mod note_vectors;
mod notebook;
mod passages;
mod pending;
mod read;
mod retention;
mod vectors;
mod words;

pub use messages::{Collector, IndexedMessage, MessageIndex, SessionUpdate};
pub use name::FOLDER;
pub use notebook::Notebook;
pub use retention::Expired;

use std::path::PathBuf;

/// How memory is kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A folder for the index, which may be lost. It need not be there.
    pub index: PathBuf,
    /// For how many days daily notes are kept; for ever if 0.
    pub keep_days: u64,
    /// What becomes of them then.
    pub expired: Expired,
    /// From how many bytes on whoever writes to `memory/MEMORY.md` is told that it is long; never
    /// if 0.
    pub soft_limit_bytes: u64,
}
