//! Search in the messages of all sessions.

use std::ops::Range;
use std::path::PathBuf;

use super::{BoxFuture, StorageError};
use crate::event::Seq;
use crate::id::{MessageId, SessionId, TurnId};
use crate::memory::SearchMethod;
use crate::message::Role;
use crate::time::Time;

/// Finds messages of people, models and tools in all sessions.
pub trait SessionSearch: Send + Sync {
    /// The messages that fit a query best, the best first. No character of the query has a special
    /// meaning. A message is found a moment after its event is durable.
    fn search(&self, query: SessionQuery) -> BoxFuture<'_, Result<SessionHits, SearchError>>;
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionQuery {
    /// Any text; it is not a language.
    pub text: String,
    /// The most messages; a usual number if not given. A number that is too high is lowered.
    pub limit: Option<usize>,
}

/// What a search found, and how it ranked it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionHits {
    /// The messages, the best first, and only a few of each session.
    pub hits: Vec<SessionHit>,
    /// How they were ranked.
    pub method: SearchMethod,
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionHit {
    /// The session.
    pub session: SessionId,
    /// The title of the session.
    pub title: String,
    /// The folder that the tools of the session work in.
    pub workspace: PathBuf,
    /// The turn.
    pub turn: TurnId,
    /// The message.
    pub message: MessageId,
    /// The event that completed the message.
    pub seq: Seq,
    /// The author of the message.
    pub role: Role,
    /// The time of that event.
    pub at: Time,
    /// One line of the message, shortened.
    pub excerpt: String,
    /// Where the words of the query are in the excerpt, in bytes. Empty if the message fits by its
    /// meaning alone.
    pub matches: Vec<Range<usize>>,
    /// The rank as a number, from 0 to 1, the best being highest. Comparable within one result only.
    pub score: f64,
}

/// Why a search gave no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SearchError {
    /// The query cannot be searched for.
    #[error("bad query: {0}")]
    BadQuery(&'static str),
    /// The index cannot be read.
    #[error("the search index: {0}")]
    Storage(#[from] StorageError),
}
