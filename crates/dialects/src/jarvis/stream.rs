//! Streams events to a client.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use quintet_kernel::port::{BoxFuture, Error, Follower};
use quintet_kernel::{Item, SessionId};
use tokio_util::task::TaskTracker;

use super::claim_priority::{ClaimPriorities, ClaimPriority};
use super::encode::{Claimable, Frame, Link};
use super::reply::Reply;
use super::serve::AppState;
use super::wire;
use crate::held_calls::HeldCalls;
use crate::transport::sse::{self, Encode};

/// The interval of heartbeats on a stream without events.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Heartbeats without events after which a stream between turns is closed: ten minutes.
const IDLE_HEARTBEATS_LIMIT: u32 = 40;

/// The event stream of one client.
pub(super) struct Stream {
    link: Link,
    session: SessionId,
    /// The calls that the client runs.
    held: Option<HeldCalls>,
    /// Set if the client sent the message, so that it may claim calls first.
    priority: Option<ClaimPriority>,
    claim_priorities: Arc<ClaimPriorities>,
    /// Runs the release of the calls after the client has disconnected.
    tasks: TaskTracker,
    /// Heartbeats since the last event.
    idle_heartbeats: u32,
}

impl Stream {
    /// A stream of a session to a client that runs calls.
    pub(super) fn new(
        link: Link,
        session: SessionId,
        held: HeldCalls,
        priority: Option<ClaimPriority>,
        app: &AppState,
    ) -> Self {
        let (claim_priorities, tasks) = (Arc::clone(&app.claim_priorities), app.tasks.clone());
        Self {
            link,
            session,
            held: Some(held),
            priority,
            claim_priorities,
            tasks,
            idle_heartbeats: 0,
        }
    }

    /// The response, after everything that the client has was read without output.
    pub(super) async fn response(
        mut self,
        mut follow: Box<dyn Follower>,
    ) -> Result<Response, Reply> {
        // Something must be sent at once, or some clients do not get the headers until the first event.
        let mut first = b": connected\n\n".to_vec();
        while follow.position().seq < self.link.seen_seq().min(follow.head()) {
            let Some(items) = follow.next().await? else { break };
            self.encode(&items, &mut first);
        }
        // Later calls are claimed when they arrive.
        self.claim(self.link.unsent()).await;
        write(&self.link.start(), &mut first);
        let mut response = Response::new(sse::body(follow, self, first, HEARTBEAT_INTERVAL));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Ok(response)
    }
}

impl Stream {
    /// Claims calls for the client, one by one, because another desktop may hold some of them.
    async fn claim(&mut self, calls: Vec<Claimable>) {
        let Some(held) = &mut self.held else { return };
        for Claimable { call, came_back } in calls {
            if self.priority.is_none() && !came_back {
                self.claim_priorities.wait_for(&self.session, &call).await;
            }
            let single = vec![call.clone()];
            let claimed = if came_back {
                held.resume(&self.session, single).await
            } else {
                held.claim(&self.session, single).await
            };
            self.priority.iter().for_each(|priority| priority.tried(&call));
            match claimed {
                Ok(true) => self.link.claimed(call),
                Ok(false) => {}
                Err(error) => tracing::warn!(%call, %error, "claiming a call failed"),
            }
        }
    }
}

/// Releases the calls of a client that has disconnected.
impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(mut held) = self.held.take().filter(|held| !held.is_empty()) {
            self.tasks.spawn(async move { held.release().await });
        }
    }
}

impl Encode for Stream {
    fn prepare<'a>(&'a mut self, items: &'a [Item]) -> Option<BoxFuture<'a, ()>> {
        let calls = self.link.claimable(items);
        if calls.is_empty() { None } else { Some(Box::pin(self.claim(calls))) }
    }

    fn encode(&mut self, items: &[Item], out: &mut Vec<u8>) {
        for item in items {
            // A stream ends with its turn.
            if self.link.end().is_some() {
                return;
            }
            self.idle_heartbeats = 0;
            write(&self.link.encode(item), out);
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        self.idle_heartbeats += 1;
        out.extend_from_slice(b": heartbeat\n\n");
    }

    fn is_over(&self) -> bool {
        self.link.end().is_some()
            || (self.idle_heartbeats >= IDLE_HEARTBEATS_LIMIT && !self.link.in_turn())
    }

    fn broken(&mut self, error: &Error, out: &mut Vec<u8>) {
        let message = error.to_string();
        let body = wire::Error { code: "STORAGE_ERROR", message: &message, details: None };
        let data = serde_json::to_vec(&body).expect("our own types serialize");
        out.extend_from_slice(b"event: error\ndata: ");
        out.extend_from_slice(&data);
        out.extend_from_slice(b"\n\n");
    }
}

fn write(frames: &[Frame], out: &mut Vec<u8>) {
    for frame in frames {
        sse::frame(out, &frame.position.to_string(), frame.event, &frame.data);
    }
}

#[cfg(test)]
mod tests {
    use quintet_kernel::event::{Event, Record, TurnOptions};
    use quintet_kernel::{Cursor, Time, TurnId};

    use super::*;

    fn started() -> Item {
        let turn = TurnId::parse("t1").unwrap();
        let event = Event::TurnStarted { turn, attempt: 1, options: TurnOptions::default() };
        Item::Event(Arc::new(Record { seq: 1, at: Time::default(), event }))
    }

    #[test]
    fn only_a_stream_without_an_open_turn_ends_after_ten_minutes() {
        let stream = || Stream {
            link: Link::of_session(Cursor::START, 0, 0),
            session: SessionId::parse("s1").unwrap(),
            held: None,
            priority: None,
            claim_priorities: Arc::default(),
            tasks: TaskTracker::new(),
            idle_heartbeats: 0,
        };
        let (mut idle, mut busy) = (stream(), stream());
        let mut out = Vec::new();
        busy.encode(&[started()], &mut out);
        for beat in 1..=100 {
            idle.keep_alive(&mut out);
            busy.keep_alive(&mut out);
            assert_eq!((idle.is_over(), busy.is_over()), (beat >= 40, false), "beat {beat}");
        }
        assert_eq!(HEARTBEAT_INTERVAL * IDLE_HEARTBEATS_LIMIT, Duration::from_secs(600));
        assert!(out.starts_with(b": heartbeat\n\n"));
    }
}
