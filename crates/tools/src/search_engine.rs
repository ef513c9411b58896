//! The configured search engine: its requests and results.
//!
//! Its server may be anywhere, including this machine, because the user configured it and no model can.
//! Redirects are not followed, so the key goes nowhere else.

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};

use crate::fetch::{self, FetchPolicy};
use results::SearchResults;

mod brave;
mod error_reply;
mod results;
mod searxng;

/// How much of an answer is read at most.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// How a search engine is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchApi {
    /// The Brave Search API.
    Brave,
    /// A SearXNG of one's own.
    Searxng,
}

impl SearchApi {
    /// All engines, with their names in the configuration.
    pub const ALL: [(&str, Self); 2] = [("brave", Self::Brave), ("searxng", Self::Searxng)];

    /// The default address.
    pub fn usual_url(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Searxng => None,
        }
    }

    /// Whether nothing can be asked without a key.
    pub fn needs_key(self) -> bool {
        self == Self::Brave
    }

    /// The header of the key, and the prefix of its value.
    fn key_header(self) -> (HeaderName, &'static str) {
        match self {
            Self::Brave => (HeaderName::from_static("x-subscription-token"), ""),
            // SearXNG itself has no keys; a proxy in front of it may require this one.
            Self::Searxng => (AUTHORIZATION, "Bearer "),
        }
    }
}

/// A search engine.
#[derive(Clone, Debug)]
pub struct SearchEngine {
    api: SearchApi,
    base: Url,
    reach: FetchPolicy,
    /// The headers of every request. A key is marked as sensitive, so that it is never shown.
    headers: HeaderMap,
}

impl SearchEngine {
    /// The engine at this address, which may have a path.
    pub fn new(api: SearchApi, base_url: &str, key: Option<&str>) -> Result<Self, String> {
        // What comes after the last `/` of an address would be replaced, not added to.
        let base = Url::parse(&format!("{}/", base_url.trim_end_matches('/')));
        let base = base.map_err(|error| format!("{base_url:?} is no URL: {error}"))?;
        if base.query().is_some() || base.fragment().is_some() {
            return Err(format!("{base_url:?} is more than an address and a path"));
        }
        let reach = FetchPolicy::to(&base)?;
        reach.check(&base)?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(key) = key {
            let (name, before) = api.key_header();
            let value = HeaderValue::from_str(&format!("{before}{key}"));
            let mut value = value.map_err(|_| "the key has characters that no key has")?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self { api, base, reach, headers })
    }

    /// The host that is queried.
    pub fn host(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    /// Searches, and gives what was found as a model reads it.
    pub(crate) async fn search(&self, query: &str, count: usize) -> Result<String, String> {
        let url = self.url(query, count)?;
        let response = fetch::ask(&self.reach, &url, self.headers.clone()).await?;
        if let Some(place) = fetch::location(&response) {
            return Err(format!("the search server points elsewhere, to {place:?}; not followed"));
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read(response).await?;
        if !status.is_success() {
            return Err(self.without_key(error_reply::words(self.api, status, &headers, &body)));
        }
        Ok(self.understood(&body)?.shown(query, count))
    }

    fn url(&self, query: &str, count: usize) -> Result<Url, String> {
        let (path, parameters) = match self.api {
            SearchApi::Brave => (brave::PATH, brave::parameters(query, count)),
            SearchApi::Searxng => (searxng::PATH, searxng::parameters(query)),
        };
        let mut url = self.base.join(path).map_err(|error| error.to_string())?;
        url.query_pairs_mut().extend_pairs(parameters);
        Ok(url)
    }

    fn understood(&self, body: &[u8]) -> Result<SearchResults, String> {
        let found = match self.api {
            SearchApi::Brave => brave::found(body, &self.base),
            SearchApi::Searxng => searxng::found(body),
        };
        found.map_err(|error| {
            format!("the search server's answer cannot be understood: {error}; is its URL right?")
        })
    }

    /// Removes the key from a text: a server may repeat it.
    fn without_key(&self, text: String) -> String {
        let (name, before) = self.api.key_header();
        let key = self.headers.get(name).and_then(|value| value.to_str().ok());
        match key.and_then(|key| key.strip_prefix(before)).filter(|key| !key.is_empty()) {
            Some(key) => text.replace(key, "***"),
            None => text,
        }
    }
}

/// The complete body of a response. Fails if it is too long.
async fn read(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(fetch::cause)? {
        body.extend_from_slice(&bytes);
        if body.len() > MOST_BYTES {
            return Err(format!("the search server's answer has more than {MOST_BYTES} bytes"));
        }
    }
    Ok(body)
}

#[cfg(test)]
mod tests;
