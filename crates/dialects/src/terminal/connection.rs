//! Serves one client: reads its requests, responds, and sends updates of its sessions.

mod names;
mod prompts;
mod requests;
mod sessions;

use std::future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use quintet_kernel::port::{Error as PortError, Follower};
use quintet_kernel::{Item, SessionId};
use serde_json::json;
use tokio::net::unix::OwnedReadHalf;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::decode::{self, decode};
use super::encode;
use super::rate_limiter::RateLimiter;
use super::send_queue::{Disconnected, SendPermit, SendQueue};
use super::serve::AppState;
use super::suggestions::History;
use super::wire;
use crate::jsonrpc::{self, Error, Id, Incoming, Received};
use crate::transport::connection_limit::ConnectionPermit;
use crate::transport::uds::{Line, Lines, PeerProcess};

/// The most requests of one connection per second.
const REQUESTS_PER_SECOND_LIMIT: usize = 100;
/// Time that a terminal must be quiet before a command is suggested.
const SUGGESTION_DELAY: Duration = Duration::from_millis(300);

/// The connection of one client.
pub(super) struct Connection {
    app: Arc<AppState>,
    peer: PeerProcess,
    permit: ConnectionPermit,
    link: decode::Link,
    rate: RateLimiter,
    /// The sessions that the client follows; queries go to the last one.
    followed: Vec<FollowedSession>,
    /// The sessions of the last list that was sent to the client.
    listed: Vec<SessionId>,
    /// The terminal context that was last added to a message in the current session.
    last_context: Option<String>,
    history: History,
    /// The time to suggest a command.
    suggest: Option<Instant>,
    /// The last suggestion.
    suggested: Option<String>,
}

/// A session that the client follows.
struct FollowedSession {
    session: SessionId,
    follow: Box<dyn Follower>,
    link: encode::Link,
}

impl Connection {
    pub(super) fn new(app: Arc<AppState>, peer: PeerProcess, permit: ConnectionPermit) -> Self {
        Self {
            app,
            peer,
            permit,
            link: decode::Link::default(),
            rate: RateLimiter::new(REQUESTS_PER_SECOND_LIMIT),
            followed: Vec::new(),
            listed: Vec::new(),
            last_context: None,
            history: History::default(),
            suggest: None,
            suggested: None,
        }
    }

    /// Serves the client until it has disconnected and waits for no answer, or the daemon shuts down.
    pub(super) async fn run(
        &mut self,
        mut lines: Lines<OwnedReadHalf>,
        send_queue: SendQueue,
        closing: CancellationToken,
    ) {
        let mut listening = true;
        while listening || self.has_pending_output(&closing) {
            let due = self.suggest.unwrap_or_else(Instant::now);
            let sent = tokio::select! {
                line = lines.next(), if listening => match line {
                    Ok(Some(line)) => {
                        self.permit.in_use();
                        let reply = self.receive(line).await;
                        send_queue.send(reply.as_slice()).await
                    }
                    Ok(None) | Err(_) => {
                        listening = false;
                        Ok(())
                    }
                },
                () = closing.cancelled(), if listening => {
                    listening = false;
                    Ok(())
                }
                // Closing a socket with unread data resets the connection.
                () = self.permit.revoked(), if listening => if lines.has_unread() {
                    self.permit.in_use();
                    Ok(())
                } else { return },
                () = sleep_until(due), if self.suggest.is_some() => {
                    let suggestion = self.suggestion();
                    send_queue.send(suggestion.as_slice()).await
                }
                items = next_items(&mut self.followed, &send_queue) => items.map(|(permit, which, items)| {
                    self.send_items(permit, which, items);
                }),
            };
            if sent.is_err() {
                return;
            }
            // Lets the writer run before more is queued.
            tokio::task::yield_now().await;
        }
    }

    /// True if output is still expected although no more requests are read: answers for a client that
    /// closed its side, or the last events before a shutdown.
    fn has_pending_output(&self, closing: &CancellationToken) -> bool {
        if closing.is_cancelled() { !self.followed.is_empty() } else { self.open_queries() > 0 }
    }

    fn open_queries(&self) -> usize {
        self.followed.iter().map(|entry| entry.link.open_queries_count()).sum()
    }

    fn send_items(
        &mut self,
        permit: SendPermit<'_>,
        which: usize,
        items: Result<Option<Vec<Item>>, PortError>,
    ) {
        let entry = &mut self.followed[which];
        match items {
            Ok(Some(items)) => {
                let batches = self.link.client.as_ref().is_none_or(decode::Client::accepts_batches);
                let pace = if batches { permit.pace } else { encode::ClientPace::Current };
                let messages = entry.link.encode(&items, pace);
                permit.fill(&messages);
                self.drop_left_sessions();
            }
            // The daemon is shutting down, or the session was deleted.
            Ok(None) | Err(PortError::NotFound(_)) => drop(self.followed.remove(which)),
            Err(error) => {
                tracing::warn!(session = %entry.session, %error, "reading the events of a session failed");
                self.followed.remove(which);
            }
        }
    }

    /// Drops sessions that the client left and waits for nothing from.
    fn drop_left_sessions(&mut self) {
        let last = self.followed.last().map(|entry| entry.session.clone());
        self.followed.retain(|entry| {
            entry.link.open_queries_count() > 0 || Some(&entry.session) == last.as_ref()
        });
    }

    /// The response to a line, if any.
    async fn receive(&mut self, line: Line) -> Option<String> {
        let fault = |error: Error| Some(jsonrpc::response(&Id::Null, &Err(error)));
        let bytes = match line {
            Line::Complete(bytes) => bytes,
            Line::TooLong => {
                let why = format!("a message may have at most {} bytes", wire::MESSAGE_BYTES_LIMIT);
                return fault(Error::invalid(why));
            }
        };
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return fault(Error::parse("the message is not UTF-8"));
        };
        if text.trim().is_empty() {
            return None;
        }
        match jsonrpc::read(text) {
            Err(error) => fault(error),
            Ok(Incoming::One(received)) => self.respond(received).await,
            Ok(Incoming::Batch(all)) => {
                let mut responses = Vec::new();
                for received in all {
                    responses.extend(self.respond(received).await);
                }
                jsonrpc::batch_response(&responses)
            }
        }
    }

    /// The response to one request; `None` for a notification.
    async fn respond(&mut self, received: Received) -> Option<String> {
        let allowed = self.rate.check(self.app.services.clock.now());
        let call = match received {
            Ok(call) => call,
            Err(fault) => return Some(jsonrpc::response(&fault.id, &Err(fault.error))),
        };
        let outcome = match allowed {
            Err(wait) => Err(too_many_requests(wait)),
            Ok(()) => match decode(&mut self.link, &call) {
                Ok(request) => self.dispatch(request).await,
                Err(error) => Err(error),
            },
        };
        if let (None, Err(error)) = (&call.id, &outcome) {
            tracing::debug!(
                method = call.method,
                error = error.message,
                "a notification was dropped"
            );
        }
        Some(jsonrpc::response(call.id.as_ref()?, &outcome))
    }

    /// Updates the command history and schedules a suggestion after the terminal's context changed.
    fn context_changed(&mut self) {
        self.history.add(&self.link.context.commands);
        let is_wanted = self.link.client.as_ref().is_some_and(decode::Client::wants_suggestions);
        self.suggest = is_wanted.then(|| Instant::now() + SUGGESTION_DELAY);
    }

    /// The suggestion for a quiet terminal; the same one is not sent twice.
    fn suggestion(&mut self) -> Option<String> {
        self.suggest = None;
        let found = self.history.suggestion()?;
        if self.suggested.replace(found.command.clone()).as_ref() == Some(&found.command) {
            return None;
        }
        let params = json!({
            "suggestion": found.command,
            "confidence": found.confidence,
            "source": "command_history",
            "context": found.context,
        });
        Some(jsonrpc::notification("suggestion.inline", params))
    }
}

fn too_many_requests(wait: Duration) -> Error {
    let message =
        format!("Permission denied: more than {REQUESTS_PER_SECOND_LIMIT} requests in a second");
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let data = json!({ "reason": "rate_limited", "limit": REQUESTS_PER_SECOND_LIMIT, "retry_after_ms": wait });
    Error::new(wire::PERMISSION_DENIED, message).with(data)
}

type NextItems = Result<Option<Vec<Item>>, PortError>;

/// Waits for space in the queue and then for items of any session, so that nothing is read that cannot be
/// sent. Cancel-safe.
async fn next_items<'a>(
    followed: &mut [FollowedSession],
    send_queue: &'a SendQueue,
) -> Result<(SendPermit<'a>, usize, NextItems), Disconnected> {
    let permit = send_queue.permit().await?;
    if followed.is_empty() {
        drop(permit);
        return future::pending().await;
    }
    let next = followed.iter_mut().map(|entry| entry.follow.next());
    let (items, which, _) = select_all(next).await;
    Ok((permit, which, items))
}
