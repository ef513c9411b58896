//! One model call: asks, asks again where that may help, and reads.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quintet_kernel::model::{Chunk, Failure, FailureKind, Prompt};
use quintet_kernel::port::{BoxFuture, ModelStream};
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use tokio::time::{Instant, Sleep, timeout_at};

use crate::accounts::Payer;
use crate::config::Secret;
use crate::endpoint::Endpoint;
use crate::facts::Facts;
use crate::fault;
use crate::http;
use crate::provider;
use crate::reading::Reading;
use crate::retry::{self, Retry, Trouble};
use crate::tokens;

/// As much of an error is read; far less is passed on.
const LONGEST_ERROR: usize = 64 << 10;

/// A call under way. Dropped, it closes its connection.
pub(crate) struct Call {
    endpoint: Arc<Endpoint>,
    url: String,
    body: Bytes,
    tries: u32,
    deadline: Instant,
    stage: Stage,
    /// The longest wait that is worth it.
    patience: Duration,
    /// The user who pays, if the daemon does not.
    payer: Option<Payer>,
    /// What the prompt costs, roughly, and how much was answered, for providers that do not count.
    read: u64,
    written: u64,
}

enum Stage {
    Opening(BoxFuture<'static, Result<Reading, Trouble>>),
    Reading(Box<Reading>),
    Waiting(Pin<Box<Sleep>>),
    Over,
}

impl Call {
    /// Begins a call, for somebody who may have means of their own to pay for it; nothing is sent before
    /// the first [`ModelStream::next`].
    pub(crate) fn new(
        endpoint: &Arc<Endpoint>,
        prompt: Prompt,
        facts: &Facts,
        payer: Option<Payer>,
    ) -> Result<Self, Failure> {
        let url = endpoint.url(&endpoint.family.path(&prompt.model.model));
        let files = tokens::files(&prompt);
        let body: Bytes = endpoint.body(prompt, facts)?.into();
        let read = tokens::of_request(body.len(), files);
        let deadline = after(endpoint.config.timeouts.total);
        let endpoint = Arc::clone(endpoint);
        let (tries, stage, written) = (1, Stage::Over, 0);
        let patience = Duration::MAX;
        let mut call =
            Self { endpoint, url, body, tries, deadline, stage, patience, payer, read, written };
        call.begin();
        Ok(call)
    }

    /// Has it fail rather than wait longer than this for another try.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn begin(&mut self) {
        let request = (self.url.clone(), self.body.clone());
        let endpoint = Arc::clone(&self.endpoint);
        let opening = open(endpoint, request, self.deadline, self.payer.clone());
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

    fn pass(&mut self, mut chunks: Vec<Chunk>) -> Vec<Chunk> {
        for chunk in &mut chunks {
            match chunk {
                Chunk::Output(_, text) => self.written += text.len() as u64,
                Chunk::Retrying { .. } => {}
                Chunk::Finished(answer) => {
                    self.stage = Stage::Over;
                    if answer.usage.total() == 0 {
                        let called = answer.calls.iter().map(|call| call.arguments.len() as u64);
                        let written = self.written + called.sum::<u64>();
                        answer.usage = tokens::estimate(self.read, written);
                    }
                }
            }
        }
        chunks
    }

    fn recover(&mut self, trouble: Trouble) -> Result<Vec<Chunk>, Failure> {
        self.stage = Stage::Over;
        let failure = self.endpoint.redacted(trouble.failure);
        let failure = match &self.payer {
            Some(payer) => payer.redacted(failure),
            None => failure,
        };
        let wait = trouble.retry.wait(self.tries, &self.endpoint.config.retries);
        let worth = |wait: &Duration| *wait <= self.patience && after(*wait) < self.deadline;
        let Some(wait) = wait.filter(worth) else {
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
pub(crate) fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or_else(|| now + Duration::from_secs(1 << 30))
}

async fn open(
    endpoint: Arc<Endpoint>,
    request: (String, Bytes),
    deadline: Instant,
    payer: Option<Payer>,
) -> Result<Reading, Trouble> {
    let key = key(&endpoint, payer).await?;
    endpoint.breaker.admit(&endpoint.config.name)?;
    let opened = send(&endpoint, request, deadline, key.as_ref()).await;
    match &opened {
        Err(trouble) if trouble.failure.kind == FailureKind::Unavailable => {
            endpoint.breaker.failed();
        }
        Ok(_) | Err(_) => endpoint.breaker.succeeded(),
    }
    Reading::new(endpoint, opened?, deadline)
}

/// What the call is paid with.
async fn key(endpoint: &Endpoint, payer: Option<Payer>) -> Result<Option<Secret>, Trouble> {
    let config = &endpoint.config;
    let own = match payer {
        Some(payer) => payer.key(config).await,
        None => Ok(None),
    };
    // No other model is asked instead either: who pays for that would be as unknown.
    let own = own.map_err(|reason| fault::lasting(FailureKind::Rejected, reason))?;
    let key = own.or_else(|| config.api_key.clone());
    if key.is_none() && config.needs_key {
        let failure = provider::no_key(config);
        return Err(fault::lasting(failure.kind, failure.message));
    }
    Ok(key)
}

async fn send(
    endpoint: &Endpoint,
    (url, body): (String, Bytes),
    deadline: Instant,
    key: Option<&Secret>,
) -> Result<Response, Trouble> {
    let client = endpoint.client().await?;
    let request = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream, application/json")
        .body(body);
    let request = endpoint.sign(request, key)?;
    let until = deadline.min(after(endpoint.config.timeouts.header));
    let asked = timeout_at(until, async {
        let response = request.send().await.map_err(http::trouble)?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(response).await) }
    });
    let late = || fault::lasting(FailureKind::Stalled, "the provider does not answer");
    asked.await.map_err(|_| late())?
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
