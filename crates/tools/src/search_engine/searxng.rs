//! The JSON API of SearXNG.

use serde::Deserialize;
use serde_json::Value;

use super::results::{SearchResult, SearchResults};

#[derive(Deserialize)]
struct Answer {
    results: Vec<Value>,
    /// Engines that it asked in vain, each with the reason.
    #[serde(default)]
    unresponsive_engines: Vec<Value>,
}

#[derive(Deserialize)]
struct Page {
    url: String,
    title: Option<String>,
    content: Option<String>,
    #[serde(rename = "publishedDate")]
    published: Option<String>,
}

/// Where searches are.
pub(super) const PATH: &str = "search";

/// The parameters of a request; the engine gives a page of results, however many are wanted.
pub(super) fn parameters(query: &str) -> Vec<(&'static str, String)> {
    vec![("q", query.to_owned()), ("format", "json".to_owned())]
}

pub(super) fn found(body: &[u8]) -> Result<SearchResults, serde_json::Error> {
    let answer: Answer = serde_json::from_slice(body)?;
    let hits: Vec<SearchResult> = answer.results.into_iter().filter_map(hit).collect();
    let silent = answer.unresponsive_engines.iter().filter_map(silent).collect::<Vec<_>>();
    // Failed engines matter only if the others found nothing.
    let told = hits.is_empty() && !silent.is_empty();
    let note = told.then(|| format!("[engines that gave no answer: {}]", silent.join(", ")));
    Ok(SearchResults { hits, notes: note.into_iter().collect() })
}

fn hit(page: Value) -> Option<SearchResult> {
    let page: Page = serde_json::from_value(page).ok()?;
    Some(SearchResult {
        url: page.url,
        title: page.title.unwrap_or_default(),
        snippet: page.content.unwrap_or_default(),
        age: page.published.unwrap_or_default(),
    })
}

fn silent(pair: &Value) -> Option<String> {
    let name = pair.get(0)?.as_str()?;
    Some(match pair.get(1).and_then(Value::as_str) {
        Some(why) => format!("{name} ({why})"),
        None => name.to_owned(),
    })
}
