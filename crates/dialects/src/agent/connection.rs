//! One connection: requests in, answers and news out.
//!
//! Nothing is queued for a client: what it is told of a session is read at its own pace, from the
//! session's tail or, if it is slow, from the journal. While a request is being carried out that
//! takes but a moment, nothing else is told, so that a client has its answer before the events that
//! came of it.

use std::time::Duration;

use axum::extract::ws::{Message as Frame, WebSocket, close_code};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quintet_kernel::port::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::audience::{Audience, Happening};
use super::carry::{Done, Then};
use super::decode::{Asked, Request, decode};
use super::serve::{Desk, LARGEST};
use super::shown::Shown;
use super::wire::{Manner, answer, hello};
use super::wish::Wish;
use crate::jsonrpc::{self, Id};
use crate::transport::ws::{Gone, Heartbeat, close, is_too_large, send};

/// How long to wait for a client's first word, which says how it speaks, before it is greeted.
const FIRST_WORD: Duration = Duration::from_millis(300);
/// A client that kept a frame waiting for so long, and then took it, is there.
const SLOW: Duration = Duration::from_secs(1);
/// How long a client that is let go may take to read why.
const FAREWELL: Duration = Duration::from_secs(5);
/// Requests under way that take longer than a moment.
const PENDING: usize = 32;

/// One connection.
pub(super) struct Connection {
    desk: Desk,
    manner: Manner,
    /// Whether the client is still to be greeted if it says nothing.
    greets: bool,
    greeted: bool,
    audience: Audience,
    slow: FuturesUnordered<BoxFuture<'static, Answered>>,
    heartbeat: Heartbeat,
}

/// A request that took longer.
type Answered = (Manner, Option<Id>, Result<Done, jsonrpc::Error>);

impl Connection {
    /// A connection whose client is greeted, or expects nothing of the kind.
    pub(super) fn new(desk: Desk, greets: bool) -> Self {
        Self {
            audience: Audience::new(desk.clone()),
            heartbeat: Heartbeat::new(desk.settings.ping, desk.settings.silence),
            desk,
            manner: Manner::default(),
            greets,
            greeted: false,
            slow: FuturesUnordered::new(),
        }
    }

    pub(super) async fn run(mut self, mut socket: WebSocket) {
        let closing = self.desk.settings.closing.clone();
        let first_word = Instant::now() + FIRST_WORD;
        loop {
            let step = tokio::select! {
                () = closing.cancelled() => {
                    return close(&mut socket, close_code::AWAY, "shutting down").await;
                }
                frame = socket.recv(), if self.slow.len() < PENDING => {
                    self.heartbeat.alive();
                    match frame {
                        Some(Ok(frame)) => self.receive(&mut socket, frame).await,
                        Some(Err(error)) if is_too_large(&error) => {
                            return self.let_go(&mut socket).await;
                        }
                        Some(Err(_)) | None => return,
                    }
                }
                Some((manner, id, done)) = self.slow.next() => {
                    self.give(&mut socket, (manner, id), done).await
                }
                happening = self.audience.next() => self.tell(&mut socket, happening).await,
                () = sleep_until(first_word), if self.greets => self.greet_anyone(&mut socket).await,
                there = self.heartbeat.due() => match there {
                    true => send(&mut socket, Frame::Ping(Default::default())).await,
                    false => return,
                },
            };
            if step.is_err() {
                return;
            }
        }
    }

    /// Says farewell to who announces more than is read, and leaves time to read it: the rest of the
    /// message stays unread, and closing at once would take the farewell along.
    async fn let_go(self, socket: &mut WebSocket) {
        close(socket, close_code::SIZE, "the message is too large").await;
        tokio::select! {
            () = self.desk.settings.closing.cancelled() => {}
            () = sleep(FAREWELL) => {}
        }
    }

    async fn receive(&mut self, socket: &mut WebSocket, frame: Frame) -> Result<(), Gone> {
        let asked = match &frame {
            Frame::Text(text) if text.len() > LARGEST => return too_large(socket).await,
            Frame::Binary(bytes) if bytes.len() > LARGEST => return too_large(socket).await,
            Frame::Text(text) => decode(self.manner, text),
            Frame::Binary(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => decode(self.manner, text),
                Err(_) => decode(self.manner, ""),
            },
            Frame::Ping(_) | Frame::Pong(_) => return Ok(()),
            Frame::Close(_) => return Err(Gone),
        };
        self.greets = false;
        match asked {
            Asked::One(request) => self.one(socket, request).await,
            Asked::Together(requests) => self.together(socket, requests).await,
        }
    }

    async fn one(&mut self, socket: &mut WebSocket, request: Request) -> Result<(), Gone> {
        let Request { manner, id, wish } = request;
        self.manner = manner;
        if manner == Manner::Native {
            self.greet(socket, Some(manner)).await?;
            self.audience.hear_all().await;
        }
        match wish {
            Ok(wish) if takes_longer(&wish) => {
                let desk = self.desk.clone();
                self.slow.push(Box::pin(async move {
                    // None of these is an answer.
                    let done = desk.carry_out(wish, &Shown::default()).await;
                    (manner, id, done)
                }));
                Ok(())
            }
            Ok(wish) => {
                let done = self.desk.carry_out(wish, self.audience.shown()).await;
                self.give(socket, (manner, id), done).await
            }
            Err(error) => self.give(socket, (manner, id), Err(error)).await,
        }
    }

    async fn together(
        &mut self,
        socket: &mut WebSocket,
        requests: Vec<Request>,
    ) -> Result<(), Gone> {
        let (mut answers, mut thens) = (Vec::new(), Vec::new());
        for Request { manner, id, wish } in requests {
            let done = match wish {
                Ok(wish) => self.desk.carry_out(wish, self.audience.shown()).await,
                Err(error) => Err(error),
            };
            let (outcome, then) = split(done);
            self.audience.given(&outcome);
            answers.extend(answer(manner, id.as_ref(), &outcome, self.desk.now()));
            thens.push((manner, then));
        }
        if let Some(text) = jsonrpc::together(&answers) {
            send(socket, Frame::Text(text.into())).await?;
        }
        for (manner, then) in thens {
            self.audience.follow_up(manner, then).await;
        }
        Ok(())
    }

    /// Whoever waits to be greeted before it speaks is greeted in a way that everybody understands.
    async fn greet_anyone(&mut self, socket: &mut WebSocket) -> Result<(), Gone> {
        self.greets = false;
        self.greet(socket, None).await
    }

    /// The original says hello first; a client that speaks JSON-RPC expects nothing of the kind.
    async fn greet(&mut self, socket: &mut WebSocket, manner: Option<Manner>) -> Result<(), Gone> {
        if self.greeted {
            return Ok(());
        }
        self.greeted = true;
        let frame = hello(manner, self.desk.now());
        send(socket, Frame::Text(frame.to_string().into())).await
    }

    async fn give(
        &mut self,
        socket: &mut WebSocket,
        (manner, id): (Manner, Option<Id>),
        done: Result<Done, jsonrpc::Error>,
    ) -> Result<(), Gone> {
        let (outcome, then) = split(done);
        self.audience.given(&outcome);
        if let Some(text) = answer(manner, id.as_ref(), &outcome, self.desk.now()) {
            send(socket, Frame::Text(text.into())).await?;
        }
        self.audience.follow_up(manner, then).await;
        Ok(())
    }

    async fn tell(&mut self, socket: &mut WebSocket, happening: Happening) -> Result<(), Gone> {
        let heard = match happening {
            Happening::Heard(heard) => heard,
            Happening::Changed(changes) => {
                self.audience.changed(changes).await;
                return Ok(());
            }
        };
        for frame in self.audience.told(self.manner, heard) {
            let began = Instant::now();
            send(socket, Frame::Text(frame.into())).await?;
            if began.elapsed() > SLOW {
                self.heartbeat.alive();
            }
        }
        Ok(())
    }
}

/// Whether it waits for more than storage.
fn takes_longer(wish: &Wish) -> bool {
    matches!(
        wish,
        Wish::Abort(_)
            | Wish::Compact { .. }
            | Wish::Preview(_)
            | Wish::Delete(_)
            | Wish::Models
            | Wish::Folder { .. }
    )
}

fn split(done: Result<Done, jsonrpc::Error>) -> (Result<Value, jsonrpc::Error>, Then) {
    match done {
        Ok(Done { result, then }) => (Ok(result), then),
        Err(error) => (Err(error), Then::Nothing),
    }
}

async fn too_large(socket: &mut WebSocket) -> Result<(), Gone> {
    close(socket, close_code::SIZE, "the message is too large").await;
    Err(Gone)
}
