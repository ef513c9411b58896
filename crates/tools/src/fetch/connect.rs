//! One request to addresses that were checked before.

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap};
use reqwest::{Client, ClientBuilder, Error, Method, Response, Url, redirect};
use rustls::crypto::ring;
use tokio::task::spawn_blocking;

/// Longer is not worth waiting for a connection.
const CONNECT: Duration = Duration::from_secs(10);
const AGENT: &str = concat!("quintet/", env!("CARGO_PKG_VERSION"));
const WANTED: &str =
    "text/html, text/markdown, text/plain, application/json, application/xml;q=0.9, */*;q=0.5";

/// A resolver that returns these addresses for every name.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Sends a request with these headers instead of the default ones; every status is a result.
pub(super) async fn ask(
    method: Method,
    url: &Url,
    addresses: Vec<SocketAddr>,
    headers: HeaderMap,
) -> Result<Response, String> {
    let secure = url.scheme() == "https";
    // Reading the platform's certificates takes a while.
    let client = spawn_blocking(move || client(secure, Pinned(addresses))).await;
    let client = client.map_err(|error| error.to_string())??;
    // Nothing is unpacked here, so nothing small can become large.
    let request = client.request(method, url.clone()).header(ACCEPT_ENCODING, "identity");
    let answer = request.header(ACCEPT, WANTED).headers(headers).send().await;
    answer.map_err(|error| format!("{}: {}", url.host_str().unwrap_or_default(), cause(error)))
}

/// A client for one request: no cookies, no proxy, no memory of other servers.
fn client(secure: bool, pinned: Pinned) -> Result<Client, String> {
    let builder = if secure { trusting_the_platform() } else { trusting_nobody()? };
    let builder = builder
        .dns_resolver(pinned)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT)
        .user_agent(AGENT);
    builder.build().map_err(cause)
}

fn trusting_the_platform() -> ClientBuilder {
    // An error means that another part of this process installed a provider first, which is fine.
    let _ = ring::default_provider().install_default();
    Client::builder()
}

/// A client for plain HTTP, without certificates.
fn trusting_nobody() -> Result<ClientBuilder, String> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(Client::builder().tls_backend_preconfigured(tls))
}

/// What is behind an error; the URL is known.
pub(crate) fn cause(error: Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = inner.to_string();
        source = inner.source();
    }
    text
}
