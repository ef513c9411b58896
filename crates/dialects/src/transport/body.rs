//! Reads the bodies of requests.

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;

/// Bytes beyond the limit that are still read.
const DRAIN_BYTES_LIMIT: usize = 64 * 1024 * 1024;

/// The reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The connection ended before the body was complete.
    Broken,
    /// The body is larger than the limit.
    TooLarge,
}

/// Reads a body. Fails if it is incomplete or too large; one that is too large is still read for a while,
/// so that the client gets the response instead of a closed connection.
pub async fn read_body(mut body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let (mut content, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| BodyError::Broken)?;
        let data = frame.into_data().unwrap_or_default();
        length += data.len();
        match length {
            _ if length <= limit => content.extend_from_slice(&data),
            _ if length <= limit + DRAIN_BYTES_LIMIT => content = Vec::new(),
            _ => break,
        }
    }
    if length <= limit { Ok(content.into()) } else { Err(BodyError::TooLarge) }
}
