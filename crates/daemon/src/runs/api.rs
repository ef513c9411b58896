//! A client of the control plane of runs.

use std::sync::Once;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Maximum time of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of an answer, in bytes.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// Installs the crypto provider of HTTP clients, once.
pub(crate) fn provide_crypto() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Only a second call would fail.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The control plane refused the request, with its reason.
    #[error("{detail} (HTTP {status})")]
    Refused { status: u16, detail: String },
    /// No valid answer; the request may be repeated.
    #[error("{0}")]
    Unreachable(String),
}

impl ApiError {
    /// True if the worker lost the run, or the run has ended.
    pub(crate) fn is_run_lost(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 409, .. })
    }

    /// True if the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => *status >= 500 || *status == 429,
        }
    }
}

/// The credentials for the control plane.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) runs: String,
    /// The key that stops all runs, if any.
    pub(crate) control: Option<String>,
    /// The token of an install or of the daemon, if one is needed.
    pub(crate) token: Option<String>,
}

/// The control plane.
#[derive(Clone)]
pub(crate) struct Api {
    url: String,
    keys: Keys,
    http: reqwest::Client,
}

impl Api {
    pub(crate) fn new(url: String, keys: Keys) -> anyhow::Result<Self> {
        provide_crypto();
        let builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT);
        let http = builder.timeout(REQUEST_TIMEOUT).build()?;
        Ok(Self { url, keys, http })
    }

    /// The address of the control plane.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The token of an install or of the daemon.
    pub(crate) fn token(&self) -> Option<&str> {
        self.keys.token.as_deref()
    }

    pub(crate) async fn create(&self, body: Value) -> Result<Value, ApiError> {
        self.post("/", body).await
    }

    pub(crate) async fn list(&self, query: &[(&str, &str)]) -> Result<Value, ApiError> {
        let escaped = query.iter().map(|(name, value)| format!("{name}={}", escape(value)));
        let query = escaped.collect::<Vec<_>>().join("&");
        self.send(Method::GET, &format!("/?{query}"), None).await
    }

    pub(crate) async fn view(&self, run: &str) -> Result<Value, ApiError> {
        self.send(Method::GET, &format!("/{}", escape(run)), None).await
    }

    pub(crate) async fn events(&self, run: &str, after: u64) -> Result<Value, ApiError> {
        let path = format!("/{}/events?after_seq={after}&limit=1000", escape(run));
        self.send(Method::GET, &path, None).await
    }

    pub(crate) async fn control(&self, run: &str, body: Value) -> Result<Value, ApiError> {
        self.post(&format!("/{}/control", escape(run)), body).await
    }

    pub(crate) async fn stop_all(&self, body: Value) -> Result<Value, ApiError> {
        self.post("/stop-all", body).await
    }

    pub(crate) async fn heartbeat(&self, body: Value) -> Result<Value, ApiError> {
        self.post("/workers/heartbeat", body).await
    }

    pub(crate) async fn dispatched(&self, run: &str, body: Value) -> Result<Value, ApiError> {
        self.post(&format!("/{run}/worker-dispatched"), body).await
    }

    pub(crate) async fn report(&self, run: &str, body: Value) -> Result<Value, ApiError> {
        self.post(&format!("/{run}/events"), body).await
    }

    /// The content of an uploaded file, at most `limit` bytes.
    pub(crate) async fn artifact(&self, id: &str, limit: usize) -> Result<Vec<u8>, ApiError> {
        let url = format!("{}/api/artifacts/{}", self.url, escape(id));
        let request = self.http.get(url);
        let response = self.authorized(request).send().await.map_err(unreachable)?;
        let status = response.status();
        let bytes = read(response, limit).await?;
        if status.is_success() { Ok(bytes) } else { Err(refusal(status, &bytes)) }
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, ApiError> {
        self.send(Method::POST, path, Some(body)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, ApiError> {
        let request = self.http.request(method, format!("{}/api/runs{path}", self.url));
        let mut request = request.header("x-windie-runs-key", &self.keys.runs);
        if let Some(key) = &self.keys.control {
            request = request.header("x-windie-runs-control-key", key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = self.authorized(request).send().await.map_err(unreachable)?;
        let status = response.status();
        let bytes = read(response, ANSWER_LIMIT).await?;
        if !status.is_success() {
            return Err(refusal(status, &bytes));
        }
        let no_json =
            |error| ApiError::Unreachable(format!("{} answers no JSON: {error}", self.url));
        serde_json::from_slice(&bytes).map_err(no_json)
    }

    fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.keys.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }
}

async fn read(mut response: reqwest::Response, limit: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if bytes.len() + chunk.len() > limit {
            return Err(ApiError::Refused {
                status: 413,
                detail: "the answer is too large".into(),
            });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn refusal(status: StatusCode, bytes: &[u8]) -> ApiError {
    let body: Value = serde_json::from_slice(bytes).unwrap_or_else(|_| json!({}));
    let detail = match &body["detail"] {
        Value::String(text) => text.clone(),
        Value::Null => status.canonical_reason().unwrap_or("refused").to_owned(),
        faults => faults.to_string(),
    };
    ApiError::Refused { status: status.as_u16(), detail }
}

/// The innermost cause of an error, which is the most specific.
fn unreachable(error: reqwest::Error) -> ApiError {
    let mut why = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        why = format!("{why}: {inner}");
        source = inner.source();
    }
    ApiError::Unreachable(why)
}

/// Text as a part of a URL.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let escaped = text.bytes().map(|byte| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(escape("a-b_c.9"), "a-b_c.9");
        assert_eq!(escape("a/b c&d"), "a%2Fb%20c%26d");
        assert_eq!(escape("ü"), "%C3%BC");
    }
}
