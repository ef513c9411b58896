//! Reads an answer from its connection, with a limit on silence.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use quintet_kernel::model::{Chunk, FailureKind};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio::time::{Instant, timeout_at};

use crate::decoder::Decoder;
use crate::endpoint::Endpoint;
use crate::provider_error;
use crate::retry::{AttemptError, Retry};

/// Bytes that are read ahead before chunks are passed on.
const READ_AHEAD_BYTES: usize = 64 << 10;
/// After a longer silence there is nothing to read ahead: what arrived is passed on at once.
const READ_AHEAD_SILENCE_LIMIT: Duration = Duration::from_micros(500);

type Read = Result<Option<Bytes>, reqwest::Error>;

/// An answer that is being read.
pub(crate) struct ResponseReader {
    endpoint: Arc<Endpoint>,
    /// `None` once all of it was read.
    response: Option<Response>,
    decoder: Decoder,
    deadline: Instant,
    /// The time since which nothing was received.
    waiting_since: Option<Instant>,
    /// Chunks that were not passed on yet.
    chunks: Vec<Chunk>,
    /// The error that follows these chunks.
    error: Option<AttemptError>,
}

impl ResponseReader {
    pub(crate) fn new(
        endpoint: Arc<Endpoint>,
        response: Response,
        deadline: Instant,
    ) -> Result<Self, AttemptError> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let answer_parser = endpoint.family.answer_parser();
        let decoder = match kind.unwrap_or_default().split(';').next().unwrap_or_default().trim() {
            "application/json" => Decoder::whole(answer_parser),
            "text/html" => {
                let message = "the provider answered with a web page; is its address right?";
                return Err(provider_error::permanent(FailureKind::Malformed, message));
            }
            _ => Decoder::stream(answer_parser),
        };
        Ok(Self {
            endpoint,
            response: Some(response),
            decoder,
            deadline,
            waiting_since: None,
            chunks: Vec::new(),
            error: None,
        })
    }

    /// Waits for the next chunks. Cancel-safe. Fails if the answer is cut off, stalls or reports an
    /// error.
    pub(crate) async fn next(&mut self) -> Result<Vec<Chunk>, AttemptError> {
        loop {
            if !self.chunks.is_empty() {
                return Ok(std::mem::take(&mut self.chunks));
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            if self.wait().await < READ_AHEAD_SILENCE_LIMIT {
                self.read_ahead().await;
            }
        }
    }

    /// Waits for one read; returns how long that took.
    async fn wait(&mut self) -> Duration {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let Some(response) = &mut self.response else {
            self.end();
            return since.elapsed();
        };
        let idle = since.checked_add(self.endpoint.config.timeouts.idle);
        let until = idle.map_or(self.deadline, |idle| idle.min(self.deadline));
        match timeout_at(until, response.chunk()).await {
            Ok(read) => self.take(read),
            Err(_) => self.stall(),
        }
        self.waiting_since = None;
        since.elapsed()
    }

    /// Reads data that has already arrived. The connection returns one piece at a time and prepares
    /// the next when it is polled, so this yields a few times.
    async fn read_ahead(&mut self) {
        let mut left = READ_AHEAD_BYTES;
        while left > 0 && self.error.is_none() {
            let Some(response) = &mut self.response else { return };
            let mut ready = poll_now(response).await;
            if ready.is_none() {
                tokio::task::yield_now().await;
                ready = poll_now(response).await;
            }
            let Some(read) = ready else { return };
            left = left.saturating_sub(size(&read));
            self.take(read);
        }
    }

    fn take(&mut self, read: Read) {
        let bytes = match read {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                self.response = None;
                return self.end();
            }
            // After a connection error the answer is incomplete, whatever was received before.
            Err(_) => {
                let broken = "the answer broke off in the middle";
                return self.fail(provider_error::transient(FailureKind::Cut, broken));
            }
        };
        if let Err(error) = self.decoder.feed(&bytes, &mut self.chunks) {
            self.fail(error);
        } else if self.decoder.is_done() {
            if let Some(response) = self.response.take() {
                self.endpoint.http.linger(response);
            }
            self.end();
        }
    }

    fn stall(&mut self) {
        self.response = None;
        let late = Instant::now() >= self.deadline;
        let why = if late { "the answer took too long" } else { "the answer stopped coming" };
        // An answer with a finish reason is complete, whatever else was to follow.
        if self.decoder.end(&mut self.chunks).is_err() {
            self.fail(provider_error::permanent(FailureKind::Stalled, why));
        }
    }

    fn end(&mut self) {
        if let Err(error) = self.decoder.end(&mut self.chunks) {
            self.fail(error);
        }
    }

    /// Stores an error; a call whose answer has started is not retried.
    fn fail(&mut self, error: AttemptError) {
        self.response = None;
        let retry = if self.decoder.is_blank() { error.retry } else { Retry::Never };
        self.error = Some(AttemptError { retry, ..error });
    }
}

fn size(read: &Read) -> usize {
    match read {
        Ok(Some(bytes)) => bytes.len().max(1),
        Ok(None) | Err(_) => READ_AHEAD_BYTES,
    }
}

/// A read, if data is available now.
async fn poll_now(response: &mut Response) -> Option<Read> {
    poll_fn(|cx| {
        Poll::Ready(match pin!(response.chunk()).poll(cx) {
            Poll::Ready(read) => Some(read),
            Poll::Pending => None,
        })
    })
    .await
}
