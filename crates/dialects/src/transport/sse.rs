//! Server-sent events: one follower as the body of a response.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use quintet_kernel::Item;
use quintet_kernel::port::{BoxFuture, Error, Follower};

/// Encodes the items of a follower as bytes of the stream.
pub trait Encode: Send + 'static {
    /// Work to do before items are encoded; none for most protocols.
    fn prepare<'a>(&'a mut self, _items: &'a [Item]) -> Option<BoxFuture<'a, ()>> {
        None
    }
    /// Writes frames for some items.
    fn encode(&mut self, items: &[Item], out: &mut Vec<u8>);
    /// Writes something that keeps the connection open.
    fn keep_alive(&mut self, out: &mut Vec<u8>);
    /// True after the stream has ended.
    fn is_over(&self) -> bool {
        false
    }
    /// Writes an error: the session cannot be read.
    fn broken(&mut self, error: &Error, out: &mut Vec<u8>);
    /// Writes a message that the daemon is shutting down; nothing for protocols whose clients reconnect on
    /// their own.
    fn closing(&mut self, _out: &mut Vec<u8>) {}
}

/// A response body that follows a session as long as the client is connected.
///
/// The follower is only read when the connection can send more, so a slow client costs no more than a cursor.
pub fn body(
    follow: Box<dyn Follower>,
    encode: impl Encode,
    first: Vec<u8>,
    keep_alive_interval: Duration,
) -> Body {
    let state = Some((follow, encode, first));
    Body::from_stream(stream::unfold(state, move |state| async move {
        let (mut follow, mut encode, mut out) = state?;
        if !out.is_empty() {
            let first = Bytes::from(std::mem::take(&mut out));
            let rest = (!encode.is_over()).then_some((follow, encode, out));
            return Some((Ok::<_, std::convert::Infallible>(first), rest));
        }
        while out.is_empty() {
            match tokio::time::timeout(keep_alive_interval, follow.next()).await {
                Err(_) => encode.keep_alive(&mut out),
                Ok(Ok(Some(items))) => {
                    if let Some(work) = encode.prepare(&items) {
                        work.await;
                    }
                    encode.encode(&items, &mut out);
                }
                Ok(Ok(None)) => {
                    encode.closing(&mut out);
                    return (!out.is_empty()).then(|| (Ok(Bytes::from(out)), None));
                }
                Ok(Err(error)) => {
                    encode.broken(&error, &mut out);
                    return Some((Ok(Bytes::from(out)), None));
                }
            }
        }
        let rest = (!encode.is_over()).then_some((follow, encode, Vec::new()));
        Some((Ok(Bytes::from(out)), rest))
    }))
}

/// Appends one frame. `data` must not contain a line break; JSON never does.
pub fn frame(out: &mut Vec<u8>, id: &str, event: &str, data: &[u8]) {
    for (field, value) in [("id", id.as_bytes()), ("event", event.as_bytes()), ("data", data)] {
        out.extend_from_slice(field.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    out.push(b'\n');
}
