//! Events to clients: as a stream that goes on, or as an array of what was.

use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use quintet_kernel::port::{Error, Follow};
use quintet_kernel::{Item, State};
use serde_json::json;

use super::decode::{Reply, refusal};
use super::encode::Link;
use crate::transport::sse::{self, Encode};

/// How often a silent stream shows that it is alive.
const BEAT: Duration = Duration::from_secs(15);

/// Everything that was durable when the request came, or the first part of it, as an array.
pub(super) async fn history(
    mut follow: Box<dyn Follow>,
    mut link: Link,
    most: usize,
) -> Result<Vec<u8>, Reply> {
    let head = follow.head();
    let mut out = b"[".to_vec();
    let mut count = 0;
    while follow.position().seq < head && count < most {
        let Some(items) = follow.next().await.map_err(|error| refusal(&error))? else { break };
        let frames = items.iter().flat_map(|item| link.encode(item));
        for frame in frames.take(most - count) {
            if count > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&frame.json);
            count += 1;
        }
    }
    out.push(b']');
    Ok(out)
}

/// One client that listens.
pub(super) struct Stream {
    pub(super) link: Link,
    /// What it is sent before anything else.
    pub(super) first: Vec<u8>,
}

impl Stream {
    pub(super) fn response(mut self, follow: Box<dyn Follow>) -> Response {
        // Something must flow at once, or clients wait for the first event to see the headers.
        let mut first = b": connected\n\n".to_vec();
        first.append(&mut self.first);
        let mut response = Response::new(sse::body(follow, self, first, BEAT));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

impl Encode for Stream {
    fn encode(&mut self, items: &[Item], out: &mut Vec<u8>) {
        for frame in items.iter().flat_map(|item| self.link.encode(item)) {
            sse::frame(out, &frame.position.to_string(), "message", &frame.json);
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b": keep-alive\n\n");
    }

    fn broken(&mut self, error: &Error, out: &mut Vec<u8>) {
        out.extend_from_slice(format!(": {error}\n\n").as_bytes());
    }
}

/// Tells a client that it knows more than there is.
pub(super) fn reset(state: &State, asked: &str, head: u64) -> Vec<u8> {
    let event = json!({
        "ts": state.updated.to_string(),
        "session_id": state.id.as_str(),
        "type": "stream_reset",
        "message": "the position is after the end of the session; everything is sent again",
        "data": { "requested": asked, "last_event_id": head.to_string() },
    });
    let mut out = Vec::new();
    sse::frame(&mut out, "0", "message", event.to_string().as_bytes());
    out
}
