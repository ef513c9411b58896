//! One connection: requests in, answers and notifications out.
//!
//! Nothing is queued for a client: the events of a session are read at the client's own pace, from the
//! session's tail or, if it is slow, from the journal. While a short request is handled nothing else is
//! sent, so that its response comes before the events that it causes.

use std::time::Duration;

use axum::extract::ws::{Message as Frame, WebSocket, close_code};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quintet_kernel::port::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::decode::{Decoded, RequestFrame, decode};
use super::dispatch::{FollowUp, Reply};
use super::request::Request;
use super::serve::{AppState, MESSAGE_BYTES_LIMIT};
use super::shown_questions::ShownQuestions;
use super::subscriptions::{Subscriptions, Update};
use super::wire::{Framing, greeting, response};
use crate::jsonrpc::{self, Id};
use crate::transport::ws::{Gone, Heartbeat, close, is_too_large, send};

/// Time to wait for a client's first request, which shows its framing, before the greeting is sent.
const GREETING_DELAY: Duration = Duration::from_millis(300);
/// A send that took this long and succeeded counts as a sign of life.
const SLOW_SEND_THRESHOLD: Duration = Duration::from_secs(1);
/// Time for a client to read why its connection is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Long requests that may run at once.
const PENDING_LIMIT: usize = 32;

/// One connection.
pub(super) struct Connection {
    app: AppState,
    framing: Framing,
    /// True until the client was greeted or sent its first frame.
    greets: bool,
    greeted: bool,
    subscriptions: Subscriptions,
    slow: FuturesUnordered<BoxFuture<'static, Answered>>,
    heartbeat: Heartbeat,
}

/// The reply to a long request.
type Answered = (Framing, Option<Id>, Result<Reply, jsonrpc::Error>);

impl Connection {
    /// A connection. If `greets` is true, a client that sends nothing at first is greeted after a delay.
    pub(super) fn new(app: AppState, greets: bool) -> Self {
        Self {
            subscriptions: Subscriptions::new(app.clone()),
            heartbeat: Heartbeat::new(app.settings.ping, app.settings.silence),
            app,
            framing: Framing::default(),
            greets,
            greeted: false,
            slow: FuturesUnordered::new(),
        }
    }

    pub(super) async fn run(mut self, mut socket: WebSocket) {
        let closing = self.app.settings.closing.clone();
        let greet_at = Instant::now() + GREETING_DELAY;
        loop {
            let step = tokio::select! {
                () = closing.cancelled() => {
                    return close(&mut socket, close_code::AWAY, "shutting down").await;
                }
                frame = socket.recv(), if self.slow.len() < PENDING_LIMIT => {
                    self.heartbeat.alive();
                    match frame {
                        Some(Ok(frame)) => self.receive(&mut socket, frame).await,
                        Some(Err(error)) if is_too_large(&error) => {
                            return self.close_too_large(&mut socket).await;
                        }
                        Some(Err(_)) | None => return,
                    }
                }
                Some((framing, id, reply)) = self.slow.next() => {
                    self.send_reply(&mut socket, (framing, id), reply).await
                }
                update = self.subscriptions.next() => self.send_update(&mut socket, update).await,
                () = sleep_until(greet_at), if self.greets => self.greet_unknown(&mut socket).await,
                alive = self.heartbeat.due() => if alive { send(&mut socket, Frame::Ping(Default::default())).await } else { return },
            };
            if step.is_err() {
                return;
            }
        }
    }

    /// Closes the connection after a frame that is too large. The rest of the frame stays unread, and
    /// disconnecting at once would discard the close reason, so the client gets some time to read it.
    async fn close_too_large(self, socket: &mut WebSocket) {
        close(socket, close_code::SIZE, "the message is too large").await;
        tokio::select! {
            () = self.app.settings.closing.cancelled() => {}
            () = sleep(CLOSE_TIMEOUT) => {}
        }
    }

    async fn receive(&mut self, socket: &mut WebSocket, frame: Frame) -> Result<(), Gone> {
        let decoded = match &frame {
            Frame::Text(text) if text.len() > MESSAGE_BYTES_LIMIT => {
                return too_large(socket).await;
            }
            Frame::Binary(bytes) if bytes.len() > MESSAGE_BYTES_LIMIT => {
                return too_large(socket).await;
            }
            Frame::Text(text) => decode(self.framing, text),
            Frame::Binary(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => decode(self.framing, text),
                Err(_) => decode(self.framing, ""),
            },
            Frame::Ping(_) | Frame::Pong(_) => return Ok(()),
            Frame::Close(_) => return Err(Gone),
        };
        self.greets = false;
        match decoded {
            Decoded::One(request) => self.one(socket, request).await,
            Decoded::Batch(requests) => self.batch(socket, requests).await,
        }
    }

    async fn one(&mut self, socket: &mut WebSocket, request: RequestFrame) -> Result<(), Gone> {
        let RequestFrame { framing, id, request } = request;
        self.framing = framing;
        if framing == Framing::Legacy {
            self.greet(socket, Some(framing)).await?;
            self.subscriptions.subscribe_to_all().await;
        }
        match request {
            Ok(request) if is_slow(&request) => {
                let app = self.app.clone();
                self.slow.push(Box::pin(async move {
                    // Slow requests answer no questions.
                    let reply = app.dispatch(request, &ShownQuestions::default()).await;
                    (framing, id, reply)
                }));
                Ok(())
            }
            Ok(request) => {
                let reply = self.app.dispatch(request, self.subscriptions.shown()).await;
                self.send_reply(socket, (framing, id), reply).await
            }
            Err(error) => self.send_reply(socket, (framing, id), Err(error)).await,
        }
    }

    async fn batch(
        &mut self,
        socket: &mut WebSocket,
        requests: Vec<RequestFrame>,
    ) -> Result<(), Gone> {
        let (mut responses, mut follow_ups) = (Vec::new(), Vec::new());
        for RequestFrame { framing, id, request } in requests {
            let reply = match request {
                Ok(request) => self.app.dispatch(request, self.subscriptions.shown()).await,
                Err(error) => Err(error),
            };
            let (outcome, then) = into_outcome(reply);
            self.subscriptions.note_result(&outcome);
            responses.extend(response(framing, id.as_ref(), &outcome, self.app.now()));
            follow_ups.push((framing, then));
        }
        if let Some(text) = jsonrpc::batch_response(&responses) {
            send(socket, Frame::Text(text.into())).await?;
        }
        for (framing, then) in follow_ups {
            self.subscriptions.follow_up(framing, then).await;
        }
        Ok(())
    }

    /// Greets a client that has sent nothing, in both framings at once.
    async fn greet_unknown(&mut self, socket: &mut WebSocket) -> Result<(), Gone> {
        self.greets = false;
        self.greet(socket, None).await
    }

    /// Sends the first frame of the original server; JSON-RPC clients do not expect one.
    async fn greet(
        &mut self,
        socket: &mut WebSocket,
        framing: Option<Framing>,
    ) -> Result<(), Gone> {
        if self.greeted {
            return Ok(());
        }
        self.greeted = true;
        let frame = greeting(framing, self.app.now());
        send(socket, Frame::Text(frame.to_string().into())).await
    }

    async fn send_reply(
        &mut self,
        socket: &mut WebSocket,
        (framing, id): (Framing, Option<Id>),
        reply: Result<Reply, jsonrpc::Error>,
    ) -> Result<(), Gone> {
        let (outcome, then) = into_outcome(reply);
        self.subscriptions.note_result(&outcome);
        if let Some(text) = response(framing, id.as_ref(), &outcome, self.app.now()) {
            send(socket, Frame::Text(text.into())).await?;
        }
        self.subscriptions.follow_up(framing, then).await;
        Ok(())
    }

    async fn send_update(&mut self, socket: &mut WebSocket, update: Update) -> Result<(), Gone> {
        let delivery = match update {
            Update::Items(delivery) => delivery,
            Update::Changed(changes) => {
                self.subscriptions.changed(changes).await;
                return Ok(());
            }
        };
        for frame in self.subscriptions.frames(self.framing, delivery) {
            let started = Instant::now();
            send(socket, Frame::Text(frame.into())).await?;
            if started.elapsed() > SLOW_SEND_THRESHOLD {
                self.heartbeat.alive();
            }
        }
        Ok(())
    }
}

/// True if a request waits for more than storage.
fn is_slow(request: &Request) -> bool {
    matches!(
        request,
        Request::Abort(_)
            | Request::Compact { .. }
            | Request::PreviewCompaction(_)
            | Request::Delete(_)
            | Request::Models
            | Request::ListFolder { .. }
    )
}

fn into_outcome(reply: Result<Reply, jsonrpc::Error>) -> (Result<Value, jsonrpc::Error>, FollowUp) {
    match reply {
        Ok(Reply { result, then }) => (Ok(result), then),
        Err(error) => (Err(error), FollowUp::Nothing),
    }
}

async fn too_large(socket: &mut WebSocket) -> Result<(), Gone> {
    close(socket, close_code::SIZE, "the message is too large").await;
    Err(Gone)
}
