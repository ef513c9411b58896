//! What is remembered beyond a session: Markdown files in the workspace that people can read and edit.

use crate::time::Time;

/// Which file something is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryFile {
    /// What should stay known: `memory/MEMORY.md`.
    LongTerm,
    /// What belongs to a day: `memory/YYYY-MM-DD.md`.
    Daily,
}

impl MemoryFile {
    /// The word for it in configuration, tools and protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::LongTerm => "long_term",
            Self::Daily => "daily",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::LongTerm, Self::Daily].into_iter().find(|target| target.name() == name)
    }
}

/// Something to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEntry {
    /// Where it belongs.
    pub target: MemoryFile,
    /// What it says, in Markdown.
    pub content: String,
    /// When it was decided, for one that may be asked for again because nobody knows whether it was
    /// written: it goes to the file of that day, and only if that does not have it yet.
    pub once: Option<Time>,
}

impl MemoryEntry {
    /// An entry that is written now, whatever is there already.
    pub fn new(target: MemoryFile, content: impl Into<String>) -> Self {
        Self { target, content: content.into(), once: None }
    }
}

/// Where an entry stands, durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedEntry {
    /// The file, from the workspace on.
    pub path: String,
    /// The first line of the entry, counted from 1.
    pub line_start: u64,
    /// The last line.
    pub line_end: u64,
    /// What whoever wrote it should know, such as that the file has grown too long.
    pub warning: Option<String>,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryQuery {
    /// Any text; it is not a language.
    pub text: String,
    /// Where to look; everywhere if not given.
    pub kind: Option<MemoryFile>,
    /// How many passages are wanted at most; a sensible number if not given. There is a highest
    /// number, and asking for more is asking for that.
    pub limit: Option<usize>,
}

/// A passage that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryMatch {
    /// The file, relative to the workspace.
    pub path: String,
    /// What it says, shortened around what was looked for.
    pub excerpt: String,
    /// The first line, counted from 1.
    pub line_start: u64,
    /// The last line.
    pub line_end: u64,
    /// How well it fits, from 0 to 1, the best being highest.
    pub score: f64,
}

/// What a search found, and how it ranked it.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The passages, the best first.
    pub passages: Vec<MemoryMatch>,
    /// How they were ranked.
    pub method: SearchMethod,
}

/// How a search ranked what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchMethod {
    /// By words alone.
    Words {
        /// Why not by meaning.
        reason: String,
    },
    /// By words and by meaning.
    WordsAndMeaning,
}

impl SearchMethod {
    /// The word for it in protocols.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Words { .. } => "words",
            Self::WordsAndMeaning => "words_and_meaning",
        }
    }

    /// Why meaning was left out, where it was.
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
    /// The first; 0 means 1.
    pub first: u64,
    /// The last; the end of the file if not given.
    pub last: Option<u64>,
}

impl LineRange {
    /// All of them.
    pub const ALL: Self = Self { first: 1, last: None };
}

/// Lines that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The file of the lines, relative to the workspace.
    pub path: String,
    /// What they say.
    pub text: String,
    /// The first of them, counted from 1.
    pub line_start: u64,
    /// The last of them; before the first if the file does not go that far.
    pub line_end: u64,
    /// How many lines the file has.
    pub lines: u64,
}

/// Why memory could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// There is no such file of memory.
    #[error("no such memory file: {0}")]
    NotFound(String),
    /// The path is none of memory's, or leads out of the workspace.
    #[error("path is outside of memory: {0}")]
    Outside(String),
    /// More than is taken or given at once.
    #[error("{what} is too large ({bytes} bytes, at most {most})")]
    TooLarge {
        /// What is.
        what: String,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        most: u64,
    },
    /// Nothing can be looked for like this.
    #[error("bad query: {0}")]
    BadQuery(&'static str),
    /// Nothing can be written like this.
    #[error("bad entry: {0}")]
    BadEntry(&'static str),
    /// The files or the index cannot be used.
    #[error("memory storage: {0}")]
    Storage(String),
}
