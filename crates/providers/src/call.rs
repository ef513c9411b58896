//! One model call: sends the request, retries if that may help, and reads the answer.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quintet_kernel::model::{Chunk, Failure, FailureKind, Prompt};
use quintet_kernel::port::{BoxFuture, ModelStream};
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use tokio::time::{Instant, Sleep, timeout_at};

use crate::accounts::KeySource;
use crate::config::Secret;
use crate::endpoint::Endpoint;
use crate::facts::Facts;
use crate::http;
use crate::provider;
use crate::provider_error;
use crate::response_reader::ResponseReader;
use crate::retry::{self, AttemptError, Retry};
use crate::tokens;

/// Bytes of an error response that are read; far fewer are passed on.
const ERROR_BYTES_LIMIT: usize = 64 << 10;

/// A running call. Dropping it closes its connection.
pub(crate) struct Call {
    endpoint: Arc<Endpoint>,
    url: String,
    body: Bytes,
    tries: u32,
    deadline: Instant,
    state: CallState,
    /// The call fails instead of waiting longer than this before a retry.
    max_retry_wait: Duration,
    /// The user who pays; the daemon's account if `None`.
    key_source: Option<KeySource>,
    /// Estimate of the prompt's tokens, and bytes of the answer, for providers that do not report usage.
    prompt_tokens: u64,
    answer_bytes: u64,
}

enum CallState {
    Opening(BoxFuture<'static, Result<ResponseReader, AttemptError>>),
    Reading(Box<ResponseReader>),
    Waiting(Pin<Box<Sleep>>),
    Finished,
}

impl Call {
    /// Begins a call, with a user's key if `key_source` has one. Nothing is sent before the first
    /// [`ModelStream::next`]. Fails if the model cannot take the prompt.
    pub(crate) fn new(
        endpoint: &Arc<Endpoint>,
        prompt: Prompt,
        facts: &Facts,
        key_source: Option<KeySource>,
    ) -> Result<Self, Failure> {
        let url = endpoint.url(&endpoint.family.path(&prompt.model.model));
        let files = tokens::files(&prompt);
        let body: Bytes = endpoint.body(prompt, facts)?.into();
        let prompt_tokens = tokens::of_request(body.len(), files);
        let deadline = after(endpoint.config.timeouts.total);
        let endpoint = Arc::clone(endpoint);
        let (tries, state, answer_bytes) = (1, CallState::Finished, 0);
        let max_retry_wait = Duration::MAX;
        let mut call = Self {
            endpoint,
            url,
            body,
            tries,
            deadline,
            state,
            max_retry_wait,
            key_source,
            prompt_tokens,
            answer_bytes,
        };
        call.begin();
        Ok(call)
    }

    /// Makes the call fail instead of waiting longer than this before a retry.
    pub(crate) fn with_max_retry_wait(self, max_retry_wait: Duration) -> Self {
        Self { max_retry_wait, ..self }
    }

    fn begin(&mut self) {
        let request = (self.url.clone(), self.body.clone());
        let endpoint = Arc::clone(&self.endpoint);
        let opening = open(endpoint, request, self.deadline, self.key_source.clone());
        self.state = CallState::Opening(Box::pin(opening));
    }

    /// Waits for the next chunks. Cancel-safe: what was read is kept in the state.
    async fn advance(&mut self) -> Result<Vec<Chunk>, Failure> {
        loop {
            match &mut self.state {
                CallState::Waiting(pause) => {
                    pause.await;
                    self.begin();
                }
                CallState::Opening(opening) => match opening.await {
                    Ok(reader) => self.state = CallState::Reading(Box::new(reader)),
                    Err(error) => return self.recover(error),
                },
                CallState::Reading(reader) => match reader.next().await {
                    Ok(chunks) => return Ok(self.pass_on(chunks)),
                    Err(error) => return self.recover(error),
                },
                CallState::Finished => return Err(finished()),
            }
        }
    }

    fn pass_on(&mut self, mut chunks: Vec<Chunk>) -> Vec<Chunk> {
        for chunk in &mut chunks {
            match chunk {
                Chunk::Output(_, text) => self.answer_bytes += text.len() as u64,
                Chunk::Retrying { .. } => {}
                Chunk::Finished(answer) => {
                    self.state = CallState::Finished;
                    if answer.usage.total() == 0 {
                        let called = answer.calls.iter().map(|call| call.arguments.len() as u64);
                        let answer_bytes = self.answer_bytes + called.sum::<u64>();
                        answer.usage = tokens::estimate(self.prompt_tokens, answer_bytes);
                    }
                }
            }
        }
        chunks
    }

    fn recover(&mut self, error: AttemptError) -> Result<Vec<Chunk>, Failure> {
        self.state = CallState::Finished;
        let failure = self.endpoint.redacted(error.failure);
        let failure = match &self.key_source {
            Some(key_source) => key_source.redacted(failure),
            None => failure,
        };
        let wait = error.retry.wait(self.tries, &self.endpoint.config.retries);
        let worth = |wait: &Duration| *wait <= self.max_retry_wait && after(*wait) < self.deadline;
        let Some(wait) = wait.filter(worth) else {
            return Err(given_up(failure, self.tries));
        };
        self.tries += 1;
        tracing::debug!(provider = self.endpoint.config.name, ?wait, "{}", failure.message);
        self.state = CallState::Waiting(Box::pin(tokio::time::sleep(wait)));
        Ok(vec![Chunk::Retrying { attempt: self.tries, wait, reason: failure.message }])
    }
}

impl ModelStream for Call {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(self.advance())
    }
}

/// The failure of the last attempt. After retries the message states their number and a remedy.
fn given_up(failure: Failure, tries: u32) -> Failure {
    if tries == 1 {
        return failure;
    }
    let remedy = "wait, or set `models.fallback` to have another model answer";
    let message = format!("{} (gave up after {tries} tries; {remedy})", failure.message);
    Failure { message, ..failure }
}

fn finished() -> Failure {
    Failure { kind: FailureKind::Cut, message: "the answer is over".into() }
}

/// The time after a wait; thirty years away if the addition overflows.
pub(crate) fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or_else(|| now + Duration::from_secs(1 << 30))
}

async fn open(
    endpoint: Arc<Endpoint>,
    request: (String, Bytes),
    deadline: Instant,
    key_source: Option<KeySource>,
) -> Result<ResponseReader, AttemptError> {
    let key = key(&endpoint, key_source).await?;
    endpoint.breaker.admit(&endpoint.config.name)?;
    let opened = send(&endpoint, request, deadline, key.as_ref()).await;
    match &opened {
        Err(error) if error.failure.kind == FailureKind::Unavailable => {
            endpoint.breaker.failed();
        }
        Ok(_) | Err(_) => endpoint.breaker.succeeded(),
    }
    ResponseReader::new(endpoint, opened?, deadline)
}

/// The key of the call: the user's, or else the daemon's.
async fn key(
    endpoint: &Endpoint,
    key_source: Option<KeySource>,
) -> Result<Option<Secret>, AttemptError> {
    let config = &endpoint.config;
    let own = match key_source {
        Some(key_source) => key_source.key(config).await,
        None => Ok(None),
    };
    // No fallback model is used either: its account would be unknown as well.
    let own = own.map_err(|reason| provider_error::permanent(FailureKind::Rejected, reason))?;
    let key = own.or_else(|| config.api_key.clone());
    if key.is_none() && config.needs_key {
        let failure = provider::no_key(config);
        return Err(provider_error::permanent(failure.kind, failure.message));
    }
    Ok(key)
}

async fn send(
    endpoint: &Endpoint,
    (url, body): (String, Bytes),
    deadline: Instant,
    key: Option<&Secret>,
) -> Result<Response, AttemptError> {
    let client = endpoint.client().await?;
    let request = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream, application/json")
        .body(body);
    let request = endpoint.sign(request, key)?;
    let until = deadline.min(after(endpoint.config.timeouts.header));
    let asked = timeout_at(until, async {
        let response = request.send().await.map_err(http::attempt_error)?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(refusal(response, &endpoint.config.name).await)
        }
    });
    let late = || provider_error::permanent(FailureKind::Stalled, "the provider does not answer");
    asked.await.map_err(|_| late())?
}

async fn refusal(mut response: Response, provider: &str) -> AttemptError {
    let status = response.status().as_u16();
    let retry = requested_wait(response.headers()).map_or(Retry::Later, Retry::After);
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() > ERROR_BYTES_LIMIT {
            body.truncate(ERROR_BYTES_LIMIT);
            break;
        }
    }
    provider_error::from_status(status, &body, retry).with_remedy(provider)
}

fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    retry::retry_after(text(RETRY_AFTER)?, text(DATE))
}
