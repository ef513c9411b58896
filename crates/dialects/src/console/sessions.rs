//! The list of sessions by pages, and search in it.

use quintet_kernel::port::{Error, SearchError, SessionQuery, SessionSearch, Sessions};
use quintet_kernel::{SessionSummary, Time};
use serde_json::{Value, json};

use super::decode::{Reply, refusal};
use super::shape;

/// Sessions per page.
pub(super) const PAGE_SESSIONS: usize = 50;
/// How many of the newest sessions are searched by their titles.
const TITLE_SEARCH_LIMIT: usize = 500;
/// The most messages that a search returns.
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

    /// True for sessions that come later in the list. Sessions that changed meanwhile are sent on the stream.
    fn precedes(&self, summary: &SessionSummary) -> bool {
        summary.updated < self.updated
            || (summary.updated == self.updated && summary.id.as_str() < &*self.id)
    }
}

/// A page of the list, and the cursor of the next one.
pub(super) async fn page(sessions: &dyn Sessions, after: Option<&After>) -> Result<Value, Error> {
    let mut limit = PAGE_SESSIONS * 2;
    loop {
        let mut summaries = sessions.recent(None, limit).await?;
        let is_all = summaries.len() < limit;
        summaries.sort_by(|one, other| (other.updated, &other.id).cmp(&(one.updated, &one.id)));
        summaries.retain(|summary| after.is_none_or(|after| after.precedes(summary)));
        if summaries.len() <= PAGE_SESSIONS && !is_all {
            limit = limit.saturating_mul(2);
            continue;
        }
        let has_more = summaries.len() > PAGE_SESSIONS;
        summaries.truncate(PAGE_SESSIONS);
        let next = summaries.last().filter(|_| has_more);
        let next = next.map(|summary| format!("{}-{}", summary.updated.micros(), summary.id));
        let summaries: Vec<Value> = summaries.iter().map(shape::summary).collect();
        return Ok(json!({ "sessions": summaries, "next": next }));
    }
}

/// The sessions whose titles or messages match a query, best matches first.
pub(super) async fn search(
    sessions: &dyn Sessions,
    search: &dyn SessionSearch,
    text: &str,
) -> Result<Value, Reply> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Ok(json!({ "titles": [], "hits": [] }));
    }
    let summaries =
        sessions.recent(None, TITLE_SEARCH_LIMIT).await.map_err(|error| refusal(&error))?;
    let fits = |summary: &&SessionSummary| {
        let title = format!("{} {}", summary.title, summary.workspace.display()).to_lowercase();
        words.iter().all(|word| title.contains(word))
    };
    let titles: Vec<Value> =
        summaries.iter().filter(fits).take(PAGE_SESSIONS).map(shape::summary).collect();
    let query = SessionQuery { text: text.into(), limit: Some(HITS) };
    let found = match search.search(query).await {
        Ok(found) => found.hits,
        Err(SearchError::BadQuery(_)) => Vec::new(),
        Err(error @ SearchError::Storage(_)) => return Err(Reply::new(503, error.to_string())),
    };
    let hits: Vec<Value> = found.iter().map(shape::hit).collect();
    Ok(json!({ "titles": titles, "hits": hits }))
}
