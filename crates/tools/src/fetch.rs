//! Fetches pages from public web servers, never from this machine or its private network.
//!
//! A page can trick a model into any request, so every redirect is checked like a first request: its URL
//! ([`FetchPolicy`]) and every address of its name (`address.rs`). The connection uses exactly these addresses
//! (`connect.rs`), because a name may resolve differently a moment later.

use quintet_kernel::port::ToolProgress;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, Response, Url};

mod address;
mod connect;
mod html;
mod page;
mod policy;

#[cfg(test)]
mod tests;

pub(crate) use connect::cause;
pub(crate) use html::plain;
pub(crate) use page::Page;
pub use policy::FetchPolicy;

/// How often a server may point elsewhere.
const REDIRECTS_LIMIT: usize = 5;
/// How much of a body is read at most.
pub(crate) const MOST_BYTES: usize = 5 * 1024 * 1024;

/// A page to ask for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) url: Url,
    /// The most bytes of the body to read; 0 requests only the head.
    pub(crate) most: usize,
}

impl Request {
    fn method(&self) -> Method {
        if self.most == 0 { Method::HEAD } else { Method::GET }
    }

    /// The request as people read it.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method(), self.url)
    }
}

/// Asks for a page, wherever it has moved to.
pub(crate) async fn fetch(
    reach: &FetchPolicy,
    mut request: Request,
    progress: &dyn ToolProgress,
) -> Result<Page, String> {
    for _ in 0..=REDIRECTS_LIMIT {
        reach.check(&request.url)?;
        progress.report(&format!("{}\n", request.line()));
        let addresses = reach.resolve(&request.url).await?;
        let response =
            connect::ask(request.method(), &request.url, addresses, HeaderMap::new()).await?;
        match location(&response) {
            Some(location) => request.url = moved(&request.url, &location)?,
            None => return Page::read(request, response).await,
        }
    }
    Err(format!("more than {REDIRECTS_LIMIT} redirects, the last to {}", request.url))
}

/// Asks a server that `policy` names for one thing, and goes nowhere else for it.
pub(crate) async fn ask(
    reach: &FetchPolicy,
    url: &Url,
    headers: HeaderMap,
) -> Result<Response, String> {
    reach.check(url)?;
    let addresses = reach.resolve(url).await?;
    connect::ask(Method::GET, url, addresses, headers).await
}

/// The target of a redirect.
pub(crate) fn location(response: &Response) -> Option<String> {
    let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| moved)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// The page that a redirect leads to.
fn moved(url: &Url, location: &str) -> Result<Url, String> {
    let next = url.join(location);
    let next = next.map_err(|error| format!("redirected to no URL: {location:?}: {error}"))?;
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(format!("a redirect from https to http is not followed: {next}"));
    }
    Ok(next)
}
