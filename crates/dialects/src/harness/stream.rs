//! Sends events to clients: as an endless stream, or as an array of past events.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use quintet_kernel::Item;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{Error, Follower};
use quintet_kernel::session_summary::SessionSummary;
use serde_json::json;

use super::decode::{Reply, error_reply};
use super::encode::Link;
use crate::transport::sse::{self, Encode};

/// The interval of heartbeats on a stream without events.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// All events that were durable when the request came, or the first `limit` of them, as an array. They are
/// read as fast as the client reads. Fails if nothing can be read; a later failure ends the response early.
pub(super) async fn history(
    follow: Box<dyn Follower>,
    link: Link,
    limit: usize,
) -> Result<Body, Reply> {
    let mut array = Array { head: follow.head(), follow, link, limit, count: 0 };
    let mut first = b"[".to_vec();
    let more = array.page(&mut first).await.map_err(|error| error_reply(&error))?;
    let rest = stream::try_unfold(more.then_some(array), async |array| {
        let Some(mut array) = array else { return Ok(None) };
        let mut page = Vec::new();
        let more = array.page(&mut page).await?;
        Ok::<_, Error>(Some((Bytes::from(page), more.then_some(array))))
    });
    Ok(Body::from_stream(stream::iter([Ok(Bytes::from(first))]).chain(rest)))
}

/// An array of events that is being written.
struct Array {
    follow: Box<dyn Follower>,
    link: Link,
    /// The last event of the array.
    head: Seq,
    limit: usize,
    count: usize,
}

impl Array {
    /// Writes the next events; false if that was all.
    async fn page(&mut self, out: &mut Vec<u8>) -> Result<bool, Error> {
        let has_more = self.follow.position().seq < self.head && self.count < self.limit;
        let items = if has_more { self.follow.next().await? } else { None };
        let Some(items) = items else {
            out.push(b']');
            return Ok(false);
        };
        let frames = items.iter().flat_map(|item| self.link.encode(item));
        for frame in frames.take(self.limit - self.count) {
            if self.count > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&frame.json);
            self.count += 1;
        }
        Ok(true)
    }
}

/// The event stream of one client.
pub(super) struct Stream {
    pub(super) link: Link,
    /// Bytes to send before the first event.
    pub(super) first: Vec<u8>,
}

impl Stream {
    pub(super) fn response(mut self, follow: Box<dyn Follower>) -> Response {
        // Something must be sent at once, or some clients do not get the headers until the first event.
        let mut first = b": connected\n\n".to_vec();
        first.append(&mut self.first);
        let mut response = Response::new(sse::body(follow, self, first, HEARTBEAT_INTERVAL));
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

/// The event for a client whose position is after the end of the session.
pub(super) fn reset(summary: &SessionSummary, requested: &str, head: u64) -> Vec<u8> {
    let event = json!({
        "ts": summary.updated.to_string(),
        "session_id": summary.id.as_str(),
        "type": "stream_reset",
        "message": "the position is after the end of the session; everything is sent again",
        "data": { "requested": requested, "last_event_id": head.to_string() },
    });
    let mut out = Vec::new();
    sse::frame(&mut out, "0", "message", event.to_string().as_bytes());
    out
}
