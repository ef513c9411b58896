//! Speech through a provider with an OpenAI-compatible API: `/audio/transcriptions` and `/audio/speech`.

mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{Audio, BoxFuture, Recognizer, SenseError, SpeechSynthesizer};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio::sync::Semaphore;

use crate::config::{ProviderConfig, Secret};
use crate::http::Http;
use wire::{Upload, audio, reason, speech_request, transcript};

/// Maximum number of parallel requests.
const REQUESTS_LIMIT: usize = 16;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of an answer, in bytes: minutes of audio.
const ANSWER_LIMIT: usize = 64 << 20;

/// A provider's address for one kind of request. Connects with the first request.
struct Service {
    http: Arc<Http>,
    url: String,
    key: Option<Secret>,
    headers: Vec<(String, String)>,
    model: String,
    permits: Semaphore,
}

impl Service {
    fn new(config: &ProviderConfig, model: &str, path: &str) -> Self {
        Self {
            http: Arc::default(),
            url: format!("{}{path}", config.base_url.trim_end_matches('/')),
            key: config.api_key.clone(),
            headers: config.quirks.headers.clone(),
            model: model.into(),
            permits: Semaphore::new(REQUESTS_LIMIT),
        }
    }

    async fn post(&self, content_type: &str, body: Vec<u8>) -> Result<Vec<u8>, SenseError> {
        // Requests wait for a permit: a late transcript is better than none.
        let _permit = self.permits.acquire().await.map_err(|_| SenseError::Busy)?;
        let client = self.http.client(&self.url).await;
        let client = client.map_err(|_| failed("no HTTP client can be built"))?;
        let mut request = client
            .post(&self.url)
            .timeout(ANSWER_TIMEOUT)
            .header("content-type", content_type)
            .body(body);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(key) = &self.key {
            let value = HeaderValue::try_from(format!("Bearer {}", key.reveal()));
            let mut value =
                value.map_err(|_| failed("the key has characters that a key cannot have"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let body = read(response).await?;
        if status.is_success() { Ok(body) } else { Err(self.refused(status, &body)) }
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> SenseError {
        let reason = format!("the voice service answered {status}{}", reason(body));
        failed(match &self.key {
            Some(key) => key.redact(reason),
            None => reason,
        })
    }
}

async fn read(mut response: Response) -> Result<Vec<u8>, SenseError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(unreachable)? {
        if body.len() + bytes.len() > ANSWER_LIMIT {
            return Err(failed("the voice service sent too much"));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

fn unreachable(error: reqwest::Error) -> SenseError {
    let mut cause: &dyn std::error::Error = &error.without_url();
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    failed(format!("the voice service cannot be reached: {cause}"))
}

fn failed(reason: impl Into<String>) -> SenseError {
    SenseError::Failed(reason.into())
}

/// Transcribes utterances through a provider.
pub struct HttpRecognizer(Arc<Service>);

impl HttpRecognizer {
    /// A recognizer that uses a model of a provider.
    pub fn new(config: &ProviderConfig, model: &str) -> Self {
        Self(Arc::new(Service::new(config, model, "/audio/transcriptions")))
    }
}

impl fmt::Debug for HttpRecognizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRecognizer").field("model", &self.0.model).finish_non_exhaustive()
    }
}

impl Recognizer for HttpRecognizer {
    /// Always succeeds: the service is not contacted before the first request.
    fn ready(&self) -> Result<(), SenseError> {
        Ok(())
    }

    /// False: every request costs money.
    fn is_repeatable(&self) -> bool {
        false
    }

    fn recognize(
        &self,
        samples: Vec<f32>,
        language: Option<String>,
    ) -> BoxFuture<'_, Result<String, SenseError>> {
        Box::pin(async move {
            let upload = Upload::new(&self.0.model, &samples, language.as_deref());
            let answer = self.0.post(&upload.content_type(), upload.body).await?;
            transcript(&answer).map_err(failed)
        })
    }
}

/// Synthesizes speech through a provider.
pub struct HttpSpeaker {
    service: Arc<Service>,
    voice: String,
}

impl HttpSpeaker {
    /// A speaker that uses a model and a voice of a provider.
    pub fn new(config: &ProviderConfig, model: &str, voice: &str) -> Self {
        let service = Arc::new(Service::new(config, model, "/audio/speech"));
        Self { service, voice: voice.into() }
    }
}

impl fmt::Debug for HttpSpeaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSpeaker").field("model", &self.service.model).finish_non_exhaustive()
    }
}

impl SpeechSynthesizer for HttpSpeaker {
    /// Always succeeds: the service is not contacted before the first request.
    fn ready(&self) -> Result<(), SenseError> {
        Ok(())
    }

    fn speak(&self, sentence: String) -> BoxFuture<'_, Result<Audio, SenseError>> {
        Box::pin(async move {
            let body = speech_request(&self.service.model, &self.voice, &sentence);
            let answer = self.service.post("application/json", body).await?;
            audio(&answer).map_err(failed)
        })
    }
}

#[cfg(test)]
mod tests;
