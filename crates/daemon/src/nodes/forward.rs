//! Sends requests to other nodes over HTTP.

use std::fmt;
use std::time::Duration;

use quintet_kernel::port::{BoxFuture, Forward, ForwardError, NodeAddress};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;

use super::listener::{FORWARD, NODES};
use super::token::NodeToken;

/// Maximum time of a connection attempt; after that, requests go through the store.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a reply, in bytes.
const REPLY_LIMIT: u64 = 256 * 1024 * 1024;

/// A client of other nodes.
#[derive(Clone)]
pub(crate) struct HttpForward {
    http: Client,
    token: NodeToken,
}

impl fmt::Debug for HttpForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpForward")
    }
}

impl HttpForward {
    /// A client with this token, which may become known later.
    pub(crate) fn new(token: NodeToken) -> anyhow::Result<Self> {
        crate::runs::api::provide_crypto();
        // Nodes are reached directly, without the environment's proxies.
        let http = Client::builder().connect_timeout(CONNECT_TIMEOUT).no_proxy().build()?;
        Ok(Self { http, token })
    }

    /// All nodes, as the one at an address knows them.
    pub(super) async fn list(&self, url: &str) -> anyhow::Result<Value> {
        let response = self.request(Method::GET, url, NODES).send().await?;
        Ok(serde_json::from_slice(&checked(response).await?)?)
    }

    /// Starts or ends draining a node.
    pub(super) async fn drain(&self, url: &str, name: &str, on: bool) -> anyhow::Result<()> {
        let body = serde_json::json!({ "name": name, "draining": on });
        let request = self.request(Method::POST, url, NODES).body(body.to_string());
        checked(request.send().await?).await.map(drop)
    }

    fn request(&self, method: Method, url: &str, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", url.trim_end_matches('/')));
        match self.token.get() {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

async fn checked(response: Response) -> anyhow::Result<Vec<u8>> {
    let status = response.status();
    let body = response.bytes().await?.to_vec();
    if status.is_success() {
        return Ok(body);
    }
    anyhow::bail!("{} (HTTP {status})", String::from_utf8_lossy(&body).trim())
}

impl Forward for HttpForward {
    fn send(
        &self,
        to: &NodeAddress,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<u8>, ForwardError>> {
        let url = to.advertise.clone();
        Box::pin(async move {
            let unreachable = |why: String| Err(ForwardError::Unreachable(why));
            let Some(url) = url else { return unreachable("it has no address".into()) };
            let response = match self.request(Method::POST, &url, FORWARD).body(body).send().await {
                Ok(response) => response,
                Err(error) if error.is_connect() || error.is_builder() => {
                    return unreachable(error.to_string());
                }
                Err(error) => return Err(ForwardError::Unanswered(error.to_string())),
            };
            // The listener refuses a request, or passes it to the runtime and returns the answer.
            if !response.status().is_success() {
                return unreachable(format!("it answers with status {}", response.status()));
            }
            let unanswered = |why: String| ForwardError::Unanswered(why);
            if response.content_length().is_some_and(|length| length > REPLY_LIMIT) {
                return Err(unanswered("its reply is too long".into()));
            }
            let reply = response.bytes().await.map_err(|error| unanswered(error.to_string()))?;
            Ok(reply.to_vec())
        })
    }
}
