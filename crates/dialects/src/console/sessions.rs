//! The list of sessions by pages, and search in it.

use quintet_kernel::port::{Branches, Error, SearchError, SessionQuery, SessionSearch};
use quintet_kernel::{Card, Time};
use serde_json::{Value, json};

use super::decode::{Reply, refusal};
use super::shape;

/// How many sessions a page has.
pub(super) const PAGE: usize = 50;
/// How many of the newest sessions are searched by their titles.
const TITLES: usize = 500;
/// How many messages a search gives.
const HITS: usize = 40;

/// A position in the list, which is sorted by the time of the last change: `micros-session`.
#[derive(Debug)]
pub(super) struct After {
    updated: Time,
    id: String,
}

impl After {
    /// Reads a cursor.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (micros, id) = text.split_once('-')?;
        Some(Self { updated: Time::from_micros(micros.parse().ok()?), id: id.into() })
    }

    /// True for sessions that come later in the list. One that changed meanwhile was sent on the stream.
    fn precedes(&self, card: &Card) -> bool {
        card.updated < self.updated
            || (card.updated == self.updated && card.id.as_str() < &*self.id)
    }
}

/// A page of the list, and the cursor of the next one.
pub(super) async fn page(branches: &dyn Branches, after: Option<&After>) -> Result<Value, Error> {
    let mut limit = PAGE * 2;
    loop {
        let mut cards = branches.recent(None, limit).await?;
        let is_all = cards.len() < limit;
        cards.sort_by(|one, other| (other.updated, &other.id).cmp(&(one.updated, &one.id)));
        cards.retain(|card| after.is_none_or(|after| after.precedes(card)));
        if cards.len() <= PAGE && !is_all {
            limit = limit.saturating_mul(2);
            continue;
        }
        let has_more = cards.len() > PAGE;
        cards.truncate(PAGE);
        let next = cards.last().filter(|_| has_more);
        let next = next.map(|card| format!("{}-{}", card.updated.micros(), card.id));
        let cards: Vec<Value> = cards.iter().map(shape::card).collect();
        return Ok(json!({ "sessions": cards, "next": next }));
    }
}

/// The sessions whose titles or messages have words of a query, the best first.
pub(super) async fn search(
    branches: &dyn Branches,
    search: &dyn SessionSearch,
    text: &str,
) -> Result<Value, Reply> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Ok(json!({ "titles": [], "hits": [] }));
    }
    let cards = branches.recent(None, TITLES).await.map_err(|error| refusal(&error))?;
    let fits = |card: &&Card| {
        let title = format!("{} {}", card.title, card.workspace.display()).to_lowercase();
        words.iter().all(|word| title.contains(word))
    };
    let titles: Vec<Value> = cards.iter().filter(fits).take(PAGE).map(shape::card).collect();
    let query = SessionQuery { text: text.into(), limit: Some(HITS) };
    let found = match search.search(query).await {
        Ok(found) => found.hits,
        Err(SearchError::BadQuery(_)) => Vec::new(),
        Err(error @ SearchError::Storage(_)) => return Err(Reply::new(503, error.to_string())),
    };
    let hits: Vec<Value> = found.iter().map(shape::hit).collect();
    Ok(json!({ "titles": titles, "hits": hits }))
}
