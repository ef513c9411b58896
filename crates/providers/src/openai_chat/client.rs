//! One model call: asks, asks again where that may help, and reads.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quintet_kernel::model::{Chunk, Failure, FailureKind, Prompt};
use quintet_kernel::port::{BoxFuture, ModelStream};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER,
};
use reqwest::{Client, RequestBuilder, Response};
use tokio::time::{Instant, Sleep, timeout_at};

use super::offer::Offer;
use super::reading::Reading;
use super::request;
use crate::config::ProviderConfig;
use crate::fault;
use crate::http::{self, Http};
use crate::retry::{self, Retry, Trouble};

/// As much of an error is read; far less is passed on.
const LONGEST_ERROR: usize = 64 << 10;

/// A provider, as far as a call needs to know it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) config: ProviderConfig,
    pub(crate) http: Arc<Http>,
    pub(crate) offer: Offer,
}

impl Endpoint {
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.config.base_url.trim_end_matches('/'))
    }

    pub(super) async fn client(&self) -> Result<Client, Trouble> {
        self.http.client(&self.config.base_url).await
    }

    /// Adds the key to a request.
    pub(super) fn sign(&self, request: RequestBuilder) -> Result<RequestBuilder, Trouble> {
        let Some(key) = &self.config.api_key else { return Ok(request) };
        let mut value =
            HeaderValue::try_from(format!("Bearer {}", key.reveal())).map_err(|_| {
                let message = "the API key has characters that a key cannot have";
                fault::lasting(FailureKind::Unauthorized, message)
            })?;
        value.set_sensitive(true);
        Ok(request.header(AUTHORIZATION, value))
    }

    /// A failure that does not give the key away.
    fn redacted(&self, mut failure: Failure) -> Failure {
        if let Some(key) = &self.config.api_key {
            failure.message = key.redact(failure.message);
        }
        failure
    }
}

/// A call under way. Dropped, it closes its connection.
pub(crate) struct Call {
    endpoint: Arc<Endpoint>,
    body: Bytes,
    tries: u32,
    deadline: Instant,
    stage: Stage,
}

enum Stage {
    Opening(BoxFuture<'static, Result<Reading, Trouble>>),
    Reading(Box<Reading>),
    Waiting(Pin<Box<Sleep>>),
    Over,
}

impl Call {
    /// Begins a call; nothing is sent before the first [`ModelStream::next`].
    pub(crate) fn new(endpoint: &Arc<Endpoint>, prompt: &Prompt) -> Result<Self, Failure> {
        let body = request::body(prompt, &endpoint.config.profile, &endpoint.offer)?.into();
        let deadline = after(endpoint.config.timeouts.total);
        let endpoint = Arc::clone(endpoint);
        let mut call = Self { endpoint, body, tries: 1, deadline, stage: Stage::Over };
        call.begin();
        Ok(call)
    }

    fn begin(&mut self) {
        let opening = open(Arc::clone(&self.endpoint), self.body.clone(), self.deadline);
        self.stage = Stage::Opening(Box::pin(opening));
    }

    /// May be dropped while it waits and called again; what was read is kept in the stage.
    async fn advance(&mut self) -> Result<Vec<Chunk>, Failure> {
        loop {
            match &mut self.stage {
                Stage::Waiting(pause) => {
                    pause.await;
                    self.begin();
                }
                Stage::Opening(opening) => match opening.await {
                    Ok(reading) => self.stage = Stage::Reading(Box::new(reading)),
                    Err(trouble) => return self.recover(trouble),
                },
                Stage::Reading(reading) => match reading.next().await {
                    Ok(chunks) => return Ok(self.pass(chunks)),
                    Err(trouble) => return self.recover(trouble),
                },
                Stage::Over => return Err(over()),
            }
        }
    }

    fn pass(&mut self, chunks: Vec<Chunk>) -> Vec<Chunk> {
        if let Some(Chunk::Finished(_)) = chunks.last() {
            self.stage = Stage::Over;
        }
        chunks
    }

    fn recover(&mut self, trouble: Trouble) -> Result<Vec<Chunk>, Failure> {
        self.stage = Stage::Over;
        let failure = self.endpoint.redacted(trouble.failure);
        let wait = trouble.retry.wait(self.tries, &self.endpoint.config.retries);
        let Some(wait) = wait.filter(|wait| after(*wait) < self.deadline) else {
            return Err(failure);
        };
        self.tries += 1;
        tracing::debug!(provider = self.endpoint.config.name, ?wait, "{}", failure.message);
        self.stage = Stage::Waiting(Box::pin(tokio::time::sleep(wait)));
        Ok(vec![Chunk::Retrying { attempt: self.tries, wait, reason: failure.message }])
    }
}

impl ModelStream for Call {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(self.advance())
    }
}

fn over() -> Failure {
    Failure { kind: FailureKind::Cut, message: "the answer is over".into() }
}

/// A time from now on; far away if the clock cannot count that far.
pub(super) fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or_else(|| now + Duration::from_secs(1 << 30))
}

async fn open(endpoint: Arc<Endpoint>, body: Bytes, deadline: Instant) -> Result<Reading, Trouble> {
    let client = endpoint.client().await?;
    let request = client
        .post(endpoint.url("chat/completions"))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream, application/json")
        .body(body);
    let request = endpoint.sign(request)?;
    let until = deadline.min(after(endpoint.config.timeouts.header));
    let asked = timeout_at(until, async {
        let response = request.send().await.map_err(http::trouble)?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(response).await) }
    });
    let late = || fault::lasting(FailureKind::Stalled, "the provider does not answer");
    let response = asked.await.map_err(|_| late())??;
    Reading::new(endpoint, response, deadline)
}

async fn refusal(mut response: Response) -> Trouble {
    let status = response.status().as_u16();
    let retry = asked_wait(response.headers()).map_or(Retry::Later, Retry::After);
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() > LONGEST_ERROR {
            body.truncate(LONGEST_ERROR);
            break;
        }
    }
    fault::from_status(status, &body, retry)
}

fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    retry::retry_after(text(RETRY_AFTER)?, text(DATE))
}
