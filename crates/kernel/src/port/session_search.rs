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
    /// The messages that match a query best, best first. No character of the query has a special
    /// meaning. A message can be found shortly after its event is durable.
    fn search(&self, query: SessionQuery) -> BoxFuture<'_, Result<SessionHits, SearchError>>;
}

/// A search query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionQuery {
    /// Any text; there is no query syntax.
    pub text: String,
    /// Maximum number of messages; a default if `None`. Larger numbers are reduced to a maximum.
    pub limit: Option<usize>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionHits {
    /// The messages, best first, and only a few of each session.
    pub hits: Vec<SessionHit>,
    /// The ranking method that was used.
    pub method: SearchMethod,
}

/// A message that matches the query.
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
    /// The byte ranges of the query's words in the excerpt. Empty if the message matches by meaning
    /// alone.
    pub matches: Vec<Range<usize>>,
    /// The relevance, from 0 to 1. Comparable within one result only.
    pub score: f64,
}

/// Why a search failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SearchError {
    /// The query is not valid.
    #[error("bad query: {0}")]
    BadQuery(&'static str),
    /// The index cannot be read.
    #[error("the search index: {0}")]
    Storage(#[from] StorageError),
}
