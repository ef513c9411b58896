//! The HTTP endpoint of a provider.

use std::fmt;
use std::sync::Arc;

use quintet_kernel::model::{Failure, FailureKind, Prompt, WebSearch};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder};

use crate::breaker::Breaker;
use crate::config::{ProviderConfig, Secret};
use crate::facts::Facts;
use crate::family::{Family, ModelRequest};
use crate::http::Http;
use crate::inputs;
use crate::provider_error;
use crate::retry::AttemptError;
use crate::tools_cache::ToolsCache;

/// A provider that is called over HTTP.
pub(crate) struct Endpoint {
    pub(crate) config: Arc<ProviderConfig>,
    pub(crate) family: &'static dyn Family,
    pub(crate) http: Arc<Http>,
    pub(crate) tools_cache: ToolsCache,
    pub(crate) breaker: Breaker,
}

impl Endpoint {
    /// An address below the base URL.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.config.base_url.trim_end_matches('/'))
    }

    pub(crate) async fn client(&self) -> Result<Client, AttemptError> {
        self.http.client(&self.config.base_url).await
    }

    /// The body of the request for a prompt. Fails if the model does not accept it.
    pub(crate) fn body(&self, mut prompt: Prompt, facts: &Facts) -> Result<Vec<u8>, Failure> {
        inputs::fit(&mut prompt, &facts.profile, |kind, mime| self.family.takes(kind, mime))?;
        // A model that cannot call tools may reject a request with tools.
        let tools = if facts.profile.tools { prompt.tools.as_slice() } else { &[] };
        let wanted = prompt.search == WebSearch::Native;
        let search = wanted && facts.profile.search.available_with(tools.len());
        let tools = self.tools_cache.json(tools, search, self.family).map_err(unwritable)?;
        let quirks = &self.config.quirks;
        let model_request =
            ModelRequest { prompt: &prompt, facts, quirks, tools: tools.as_deref(), search };
        self.family.body(&model_request).map_err(unwritable)
    }

    /// Adds the key and the headers of the provider.
    pub(crate) fn sign(
        &self,
        mut request: RequestBuilder,
        key: Option<&Secret>,
    ) -> Result<RequestBuilder, AttemptError> {
        for (name, value) in self.family.headers() {
            request = request.header(*name, *value);
        }
        for (name, value) in &self.config.quirks.headers {
            request = request.header(name, value);
        }
        let Some(key) = key else { return Ok(request) };
        let (name, before) = self.family.key_header();
        let text = format!("{before}{}", key.reveal());
        let mut value = HeaderValue::try_from(text).map_err(|_| {
            let message = "the API key has characters that a key cannot have";
            provider_error::permanent(FailureKind::Unauthorized, message)
        })?;
        value.set_sensitive(true);
        Ok(request.header(HeaderName::from_static(name), value))
    }

    /// The failure with the key redacted.
    pub(crate) fn redacted(&self, mut failure: Failure) -> Failure {
        if let Some(key) = &self.config.api_key {
            failure.message = key.redact(failure.message);
        }
        failure
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
fn unwritable(error: serde_json::Error) -> Failure {
    Failure { kind: FailureKind::Rejected, message: error.to_string() }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("config", &self.config).finish_non_exhaustive()
    }
}
