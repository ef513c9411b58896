//! Resumable downloads over HTTP.

use std::time::Duration;

use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode};

use super::Failure;
use super::part::Part;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A download that receives nothing for this long is aborted.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of consecutive attempts that receive nothing.
const TRIES_LIMIT: u32 = 4;

pub(super) struct Web {
    client: Result<Client, String>,
}

/// Why an attempt ended.
enum AttemptError {
    /// Another attempt may succeed.
    Transient(String),
    /// No other attempt can succeed.
    Final(String),
    /// The file cannot be written.
    Disk(std::io::Error),
}

impl Web {
    pub(super) fn new() -> Self {
        // An error means that the same provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT);
        Self { client: client.build().map_err(|error| root_cause(&error)) }
    }

    /// A page of text.
    pub(super) async fn page(&self, url: &str, accept: &str) -> Result<String, String> {
        let request = self.client.clone()?.get(url).header("accept", accept);
        let response = request.send().await.map_err(|error| root_cause(&error))?;
        let response = response.error_for_status().map_err(|error| root_cause(&error))?;
        response.text().await.map_err(|error| root_cause(&error))
    }

    /// Downloads a file into its part. Retries as long as attempts receive something.
    pub(super) async fn fetch(
        &self,
        url: &str,
        part: &mut Part,
        size: Option<u64>,
        on_progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), Failure> {
        let mut left = TRIES_LIMIT;
        loop {
            let before = part.len();
            let reason = match self.resume(url, part, size, on_progress).await {
                Ok(()) => return Ok(()),
                Err(AttemptError::Final(reason)) => return Err(Failure::Source(reason)),
                Err(AttemptError::Disk(reason)) => return Err(Failure::Disk(reason)),
                Err(AttemptError::Transient(reason)) => reason,
            };
            left = if part.len() > before { TRIES_LIMIT } else { left - 1 };
            if left == 0 {
                return Err(Failure::Source(reason));
            }
        }
    }

    async fn resume(
        &self,
        url: &str,
        part: &mut Part,
        size: Option<u64>,
        on_progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), AttemptError> {
        if size.is_some_and(|size| part.len() == size) {
            return Ok(());
        }
        let mut request = self.client.clone().map_err(AttemptError::Final)?.get(url);
        if part.len() > 0 {
            request = request.header(RANGE, format!("bytes={}-", part.len()));
        }
        let response = request.send().await.map_err(|error| transient(&error))?;
        let Some(whole) = begin_response(&response, part)? else { return Ok(()) };
        if let (Some(whole), Some(size)) = (whole, size)
            && whole != size
        {
            let reason = format!("the server has another file ({whole} bytes instead of {size})");
            return Err(AttemptError::Final(reason));
        }
        receive(response, part, on_progress).await?;
        match whole.or(size).filter(|whole| *whole != part.len()) {
            Some(whole) => {
                Err(AttemptError::Transient(format!("cut off at {} of {whole}", part.len())))
            }
            None => Ok(()),
        }
    }
}

/// Truncates the part to the start of the answer and returns the size of the whole file, if known;
/// `None` if nothing is missing.
fn begin_response(
    response: &Response,
    part: &mut Part,
) -> Result<Option<Option<u64>>, AttemptError> {
    match response.status() {
        StatusCode::PARTIAL_CONTENT => match range(response) {
            Some((start, whole)) if start == part.len() => Ok(Some(whole)),
            _ => {
                Err(AttemptError::Final("the server answered with another part of the file".into()))
            }
        },
        // The part was complete, or the file has changed.
        StatusCode::RANGE_NOT_SATISFIABLE => match unsatisfied_range(response) {
            Some(whole) if whole == part.len() => Ok(None),
            _ => {
                truncate_part(part)?;
                Err(AttemptError::Transient("the file has changed".into()))
            }
        },
        status if status.is_success() => {
            truncate_part(part)?;
            Ok(Some(response.content_length()))
        }
        status if status.is_server_error() => {
            Err(AttemptError::Transient(format!("the server answered {status}")))
        }
        status => Err(AttemptError::Final(format!("the server answered {status}"))),
    }
}

fn truncate_part(part: &mut Part) -> Result<(), AttemptError> {
    part.truncate(0).map_err(AttemptError::Disk)
}

async fn receive(
    mut response: Response,
    part: &mut Part,
    on_progress: &(dyn Fn(u64) + Sync),
) -> Result<(), AttemptError> {
    while let Some(bytes) = response.chunk().await.map_err(|error| transient(&error))? {
        part.add(&bytes).map_err(AttemptError::Disk)?;
        on_progress(part.len());
    }
    Ok(())
}

/// The start of the answer and the size of the whole: `bytes 5-9/10`.
fn range(response: &Response) -> Option<(u64, Option<u64>)> {
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, whole.parse().ok()))
}

/// The size of the whole: `bytes */10`.
fn unsatisfied_range(response: &Response) -> Option<u64> {
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    text.strip_prefix("bytes */")?.parse().ok()
}

fn transient(error: &reqwest::Error) -> AttemptError {
    AttemptError::Transient(root_cause(error))
}

/// The innermost cause, which is the specific one. Addresses are left out, because they may contain
/// a password.
fn root_cause(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    match error.status() {
        Some(status) => format!("the server answered {status}"),
        None => reason.to_string(),
    }
}
