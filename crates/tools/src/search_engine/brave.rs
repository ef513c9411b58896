//! The Brave Search API.

use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use super::results::{SearchResult, SearchResults};
use crate::fetch;

#[derive(Deserialize)]
struct Answer {
    web: Option<Web>,
    query: Option<Query>,
}

#[derive(Deserialize)]
struct Web {
    #[serde(default)]
    results: Vec<Value>,
}

#[derive(Deserialize)]
struct Query {
    altered: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    url: String,
    title: Option<String>,
    description: Option<String>,
    age: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: Fault,
}

/// Why a request was refused.
#[derive(Deserialize)]
pub(super) struct Fault {
    pub(super) code: Option<String>,
    pub(super) detail: Option<String>,
}

/// Where searches are.
pub(super) const PATH: &str = "res/v1/web/search";

/// Asks for pages alone and no marks around the words that were searched for.
pub(super) fn parameters(query: &str, count: usize) -> Vec<(&'static str, String)> {
    vec![
        ("q", query.to_owned()),
        ("count", count.to_string()),
        ("result_filter", "web".to_owned()),
        ("text_decorations", "false".to_owned()),
    ]
}

pub(super) fn found(body: &[u8], base: &Url) -> Result<SearchResults, serde_json::Error> {
    let answer: Answer = serde_json::from_slice(body)?;
    let results = answer.web.map(|web| web.results).unwrap_or_default();
    let hits = results.into_iter().filter_map(|page| hit(page, base)).collect();
    let altered = answer.query.and_then(|query| query.altered);
    let notes = altered.map(|query| format!("[these are the results for {query:?}]"));
    Ok(SearchResults { hits, notes: notes.into_iter().collect() })
}

/// Reads a result, whose texts are pieces of HTML.
fn hit(page: Value, base: &Url) -> Option<SearchResult> {
    let page: Page = serde_json::from_value(page).ok()?;
    let plain = |text: Option<String>| fetch::plain(&text.unwrap_or_default(), base);
    Some(SearchResult {
        url: page.url,
        title: plain(page.title),
        snippet: plain(page.description),
        age: page.age.unwrap_or_default(),
    })
}

/// The reason in an error response, if there is one.
pub(super) fn fault(body: &[u8]) -> Option<Fault> {
    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    Some(refusal.error)
}
