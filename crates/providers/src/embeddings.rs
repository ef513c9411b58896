//! Embeddings over HTTP: from a provider with an OpenAI-compatible API, or from the internal
//! embedding service of another daemon.

mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{BoxFuture, Embedder, EmbeddingSpace, Embeddings, SenseError};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::config::{ProviderConfig, Secret};
use crate::http::Http;
use wire::{Answer, Service, readable};

/// Maximum number of parallel requests.
const REQUESTS_LIMIT: usize = 16;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of an answer, in bytes.
const ANSWER_LIMIT: usize = 64 << 20;
/// The header of the internal embedding service.
const SERVICE_KEY: HeaderName = HeaderName::from_static("x-windie-embedding-key");

/// Requests vectors over HTTP. Nothing is connected before the first request.
pub struct HttpEmbedder {
    http: Arc<Http>,
    service: Service,
    url: String,
    key: Option<Secret>,
    headers: Vec<(String, String)>,
    space: EmbeddingSpace,
    permits: Semaphore,
}

impl HttpEmbedder {
    /// An embedder that uses a model of a provider. `shorten` requests vectors of the given dimensions, which
    /// not every model supports.
    pub fn provider(
        config: &ProviderConfig,
        model: &str,
        dimensions: usize,
        shorten: bool,
    ) -> Self {
        Self {
            http: Arc::default(),
            service: Service::OpenAi { dimensions: shorten.then_some(dimensions) },
            url: format!("{}/embeddings", config.base_url.trim_end_matches('/')),
            key: config.api_key.clone(),
            headers: config.quirks.headers.clone(),
            space: EmbeddingSpace {
                provider: config.name.clone(),
                model: model.into(),
                dimensions,
            },
            permits: Semaphore::new(REQUESTS_LIMIT),
        }
    }

    /// An embedder that uses the internal embedding service of another daemon, at the address of its
    /// computer-use protocol.
    pub fn service(base_url: &str, key: Secret) -> Self {
        Self {
            http: Arc::default(),
            service: Service::Internal,
            url: format!("{}/embed", base_url.trim_end_matches('/')),
            key: Some(key),
            headers: Vec::new(),
            space: EmbeddingSpace {
                provider: "embedding-service".into(),
                model: "sentence-transformers/all-MiniLM-L6-v2".into(),
                dimensions: 384,
            },
            permits: Semaphore::new(REQUESTS_LIMIT),
        }
    }

    async fn request(&self, texts: &[String]) -> Result<Answer, SenseError> {
        let client = self.http.client(&self.url).await;
        let client = client.map_err(|_| failed("no HTTP client can be built"))?;
        let mut request = client
            .post(&self.url)
            .timeout(ANSWER_TIMEOUT)
            .header("content-type", "application/json")
            .body(self.service.body(&self.space.model, texts));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(key) = &self.key {
            let (name, value) = match self.service {
                Service::OpenAi { .. } => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
                Service::Internal => (SERVICE_KEY, key.reveal().to_owned()),
            };
            let value = HeaderValue::try_from(value);
            let mut value =
                value.map_err(|_| failed("the key has characters that a key cannot have"))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        let body = self.read(response).await?;
        if !status.is_success() {
            return Err(self.refused(status, &body));
        }
        self.service.answer(&body, texts.len(), self.space.dimensions).map_err(failed)
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, SenseError> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            if body.len() + bytes.len() > ANSWER_LIMIT {
                return Err(failed("the embedding service sent too much"));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    fn unreachable(&self, error: reqwest::Error) -> SenseError {
        let mut cause: &dyn std::error::Error = &error.without_url();
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        failed(format!("the embedding service cannot be reached: {cause}"))
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> SenseError {
        if status == StatusCode::TOO_MANY_REQUESTS {
            return SenseError::Busy;
        }
        let reason = format!("the embedding service answered {status}{}", readable(body));
        failed(match &self.key {
            Some(key) => key.redact(reason),
            None => reason,
        })
    }

    async fn embed_all(&self, texts: Vec<String>) -> Result<Embeddings, SenseError> {
        let _permit = self.permits.try_acquire().map_err(|_| SenseError::Busy)?;
        let texts: Vec<String> = texts.into_iter().map(|text| self.service.fit(text)).collect();
        let mut all = Embeddings { vectors: Vec::new(), queue_wait_ms: 0.0, service_time_ms: 0.0 };
        let mut rest = &texts[..];
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(self.service.batch_length(rest));
            let started = Instant::now();
            let answer = self.request(batch).await?;
            let elapsed = started.elapsed().as_secs_f64() * 1e3;
            all.vectors.extend(answer.vectors);
            all.queue_wait_ms += answer.queue_wait_ms.unwrap_or(0.0);
            all.service_time_ms += answer.service_time_ms.unwrap_or(elapsed);
            rest = later;
        }
        Ok(all)
    }
}

impl Embedder for HttpEmbedder {
    fn space(&self) -> EmbeddingSpace {
        self.space.clone()
    }

    /// Always succeeds: the service is not contacted before the first request.
    fn ready(&self) -> Result<(), SenseError> {
        Ok(())
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, SenseError>> {
        Box::pin(self.embed_all(texts))
    }
}

impl fmt::Debug for HttpEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpEmbedder").field("space", &self.space).finish_non_exhaustive()
    }
}

fn failed(reason: impl Into<String>) -> SenseError {
    SenseError::Failed(reason.into())
}

#[cfg(test)]
mod tests;
