//! Memory beyond a session: Markdown files in the workspace that people can read and edit.

use crate::time::Time;

/// The file that an entry is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryFile {
    /// Lasting facts: `memory/MEMORY.md`.
    LongTerm,
    /// Notes of a day: `memory/YYYY-MM-DD.md`.
    Daily,
}

impl MemoryFile {
    /// The name used in configuration, tools and protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::LongTerm => "long_term",
            Self::Daily => "daily",
        }
    }

    /// The file of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::LongTerm, Self::Daily].into_iter().find(|target| target.name() == name)
    }
}

/// An entry to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEntry {
    /// The file.
    pub target: MemoryFile,
    /// The text, in Markdown.
    pub content: String,
    /// For entries that may be written twice because of a crash: when the entry was
    /// decided. It goes to the file of that day, and only if it is not there yet.
    pub once: Option<Time>,
}

impl MemoryEntry {
    /// An entry that is written now, whatever the file contains.
    pub fn new(target: MemoryFile, content: impl Into<String>) -> Self {
        Self { target, content: content.into(), once: None }
    }
}

/// The position of a stored entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedEntry {
    /// The file, relative to the workspace.
    pub path: String,
    /// The first line of the entry, counted from 1.
    pub line_start: u64,
    /// The last line.
    pub line_end: u64,
    /// A warning for the author, such as that the file has grown too long.
    pub warning: Option<String>,
}

/// A search in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryQuery {
    /// The text to search for; it has no query syntax.
    pub text: String,
    /// The file to search; all files if `None`.
    pub kind: Option<MemoryFile>,
    /// Maximum number of passages; a default if `None`. Larger numbers are reduced to a
    /// maximum.
    pub limit: Option<usize>,
}

/// A passage that matches a query.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryMatch {
    /// The file, relative to the workspace.
    pub path: String,
    /// The text around the match.
    pub excerpt: String,
    /// The first line, counted from 1.
    pub line_start: u64,
    /// The last line.
    pub line_end: u64,
    /// The relevance, from 0 to 1.
    pub score: f64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The passages, best first.
    pub passages: Vec<MemoryMatch>,
    /// The ranking method that was used.
    pub method: SearchMethod,
}

/// How a search ranks passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchMethod {
    /// By words alone.
    Words {
        /// Why embeddings were not used.
        reason: String,
    },
    /// By words and embeddings.
    WordsAndMeaning,
}

impl SearchMethod {
    /// The name used in protocols.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Words { .. } => "words",
            Self::WordsAndMeaning => "words_and_meaning",
        }
    }

    /// Why embeddings were not used, if they were not.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Words { reason } => Some(reason),
            Self::WordsAndMeaning => None,
        }
    }
}

/// Lines of a file, both ends included, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// The first line; 0 means 1.
    pub first: u64,
    /// The last line; the end of the file if `None`.
    pub last: Option<u64>,
}

impl LineRange {
    /// The whole file.
    pub const ALL: Self = Self { first: 1, last: None };
}

/// Lines that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The file of the lines, relative to the workspace.
    pub path: String,
    /// The text of the lines.
    pub text: String,
    /// The first of them, counted from 1.
    pub line_start: u64,
    /// The last line; before the first if the file is shorter.
    pub line_end: u64,
    /// Number of lines in the file.
    pub lines: u64,
}

/// Why memory could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The memory file does not exist.
    #[error("no such memory file: {0}")]
    NotFound(String),
    /// The path is not a memory file or leads out of the workspace.
    #[error("path is outside of memory: {0}")]
    Outside(String),
    /// The entry or file exceeds the size limit.
    #[error("{what} is too large ({bytes} bytes, at most {most})")]
    TooLarge {
        /// What is too large.
        what: String,
        /// The size in bytes.
        bytes: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The query is not valid.
    #[error("bad query: {0}")]
    BadQuery(&'static str),
    /// The entry is not valid.
    #[error("bad entry: {0}")]
    BadEntry(&'static str),
    /// The files or the index could not be used.
    #[error("memory storage: {0}")]
    Storage(String),
}
