//! Keys of requests that other services make.

use axum::http::HeaderMap;

use super::reply::Reply;
use super::text;
use crate::transport::access::Token;

/// A family of requests that needs a key: the header of the key, and the answers without it.
pub(super) struct KeyHeader {
    name: &'static str,
    not_configured: &'static str,
    invalid: &'static str,
}

pub(super) const EMBEDDINGS: KeyHeader = KeyHeader {
    name: "x-windie-embedding-key",
    not_configured: "Embedding service API key is not configured",
    invalid: "Invalid embedding service API key",
};

/// Checks the key of a request, in constant time. Without a configured key every request is refused.
pub(super) fn require_key(
    key: Option<&Token>,
    headers: &HeaderMap,
    header: &KeyHeader,
) -> Result<(), Reply> {
    let key = key.ok_or_else(|| Reply::new(503, header.not_configured))?;
    if key.matches(text(headers, header.name).unwrap_or_default()) {
        Ok(())
    } else {
        Err(Reply::new(401, header.invalid))
    }
}
