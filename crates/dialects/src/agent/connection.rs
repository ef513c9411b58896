//! One connection: requests in, answers and news out.
//!
//! Nothing is queued for a client: what it is told of a session is read at its own pace, from the
//! session's tail or, if it is slow, from the journal. While a request is being carried out that
//! takes but a moment, nothing else is told, so that a client has its answer before the events that
//! came of it.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, close_code};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{BoxFuture, Error, Follow};
use quintet_kernel::{Cursor, Item, SessionId};
use serde_json::{Value, json};
use tokio::time::{Instant, interval, timeout};

use super::book::Book;
use super::carry::{Done, Then};
use super::decode::{Asked, Request, decode};
use super::encode::encode;
use super::serve::Desk;
use super::wire::{Manner, News, answer};
use super::wish::Wish;
use crate::jsonrpc::{self, Id};

/// How often the client is asked whether it is there.
const PING: Duration = Duration::from_secs(30);
/// How long it may be silent.
const SILENCE: Duration = Duration::from_secs(75);
/// How long it may take to read one frame.
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests under way that take longer than a moment.
const PENDING: usize = 32;

/// One connection.
pub(super) struct Connection {
    desk: Desk,
    manner: Manner,
    greeted: bool,
    watched: HashMap<SessionId, Watched>,
    /// Counts the times that telling of a session began anew.
    round: u64,
}

/// A session that the client is told of.
struct Watched {
    round: u64,
    book: Book,
    position: Cursor,
}

/// A follower and what it brought.
type Heard = (SessionId, u64, Box<dyn Follow>, Result<Option<Vec<Item>>, Error>);

/// A request that took longer.
type Answered = (Manner, Option<Id>, Result<Done, jsonrpc::Error>);

#[derive(Default)]
struct Streams {
    heard: FuturesUnordered<BoxFuture<'static, Heard>>,
    slow: FuturesUnordered<BoxFuture<'static, Answered>>,
}

/// The client is gone, or is to go.
struct Gone;

impl Connection {
    pub(super) fn new(desk: Desk) -> Self {
        let manner = Manner::default();
        Self { desk, manner, greeted: false, watched: HashMap::new(), round: 0 }
    }

    pub(super) async fn run(mut self, mut socket: WebSocket) {
        let closing = self.desk.settings.closing.clone();
        let (mut ping, mut last) = (interval(PING), Instant::now());
        ping.tick().await;
        let mut streams = Streams::default();
        loop {
            let step = tokio::select! {
                () = closing.cancelled() => {
                    let frame = CloseFrame { code: close_code::AWAY, reason: "shutting down".into() };
                    let _ = timeout(PATIENCE, socket.send(Frame::Close(Some(frame)))).await;
                    return;
                }
                frame = socket.recv(), if streams.slow.len() < PENDING => {
                    last = Instant::now();
                    match frame {
                        Some(Ok(frame)) => self.receive(&mut socket, &mut streams, frame).await,
                        Some(Err(_)) | None => return,
                    }
                }
                Some(answered) = streams.slow.next() => {
                    let (manner, id, done) = answered;
                    self.give(&mut socket, &mut streams, (manner, id), done).await
                }
                Some(heard) = streams.heard.next() => self.tell(&mut socket, &mut streams, heard).await,
                _ = ping.tick() => match last.elapsed() > SILENCE {
                    true => return,
                    false => send(&mut socket, Frame::Ping(Default::default())).await,
                },
            };
            if step.is_err() {
                return;
            }
        }
    }

    async fn receive(
        &mut self,
        socket: &mut WebSocket,
        streams: &mut Streams,
        frame: Frame,
    ) -> Result<(), Gone> {
        let asked = match &frame {
            Frame::Text(text) => decode(self.manner, text),
            Frame::Binary(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => decode(self.manner, text),
                Err(_) => decode(self.manner, ""),
            },
            Frame::Ping(_) | Frame::Pong(_) => return Ok(()),
            Frame::Close(_) => return Err(Gone),
        };
        match asked {
            Asked::One(request) => self.one(socket, streams, request).await,
            Asked::Together(requests) => self.together(socket, streams, requests).await,
        }
    }

    async fn one(
        &mut self,
        socket: &mut WebSocket,
        streams: &mut Streams,
        request: Request,
    ) -> Result<(), Gone> {
        let Request { manner, id, wish } = request;
        self.manner = manner;
        self.greet(socket).await?;
        match wish {
            Ok(wish) if takes_longer(&wish) => {
                let desk = self.desk.clone();
                streams.slow.push(Box::pin(async move {
                    let done = desk.carry_out(wish).await;
                    (manner, id, done)
                }));
                Ok(())
            }
            Ok(wish) => {
                let done = self.desk.carry_out(wish).await;
                self.give(socket, streams, (manner, id), done).await
            }
            Err(error) => self.give(socket, streams, (manner, id), Err(error)).await,
        }
    }

    async fn together(
        &mut self,
        socket: &mut WebSocket,
        streams: &mut Streams,
        requests: Vec<Request>,
    ) -> Result<(), Gone> {
        let (mut answers, mut thens) = (Vec::new(), Vec::new());
        for Request { manner, id, wish } in requests {
            let done = match wish {
                Ok(wish) => self.desk.carry_out(wish).await,
                Err(error) => Err(error),
            };
            let (outcome, then) = split(done);
            answers.extend(answer(manner, id.as_ref(), &outcome, self.desk.now()));
            thens.push(then);
        }
        if let Some(text) = jsonrpc::together(&answers) {
            send(socket, Frame::Text(text.into())).await?;
        }
        for then in thens {
            self.follow_up(streams, then).await;
        }
        Ok(())
    }

    /// The original says hello; a client that speaks JSON-RPC expects nothing of the kind.
    async fn greet(&mut self, socket: &mut WebSocket) -> Result<(), Gone> {
        if self.manner != Manner::Native || self.greeted {
            return Ok(());
        }
        self.greeted = true;
        let now = self.desk.now();
        let id = format!("client_{:012x}", now.micros() & 0xffff_ffff_ffff);
        let hello = News::native("system.connected", json!({ "clientId": id }));
        match hello.frame(self.manner, None, now) {
            Some(frame) => send(socket, Frame::Text(frame.into())).await,
            None => Ok(()),
        }
    }

    async fn give(
        &mut self,
        socket: &mut WebSocket,
        streams: &mut Streams,
        (manner, id): (Manner, Option<Id>),
        done: Result<Done, jsonrpc::Error>,
    ) -> Result<(), Gone> {
        let (outcome, then) = split(done);
        if let Some(text) = answer(manner, id.as_ref(), &outcome, self.desk.now()) {
            send(socket, Frame::Text(text.into())).await?;
        }
        self.follow_up(streams, then).await;
        Ok(())
    }

    async fn follow_up(&mut self, streams: &mut Streams, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Leave(session) => {
                self.watched.remove(&session);
            }
            Then::Watch(session, from) => {
                if !self.watched.contains_key(&session) {
                    self.watch(streams, session, from).await;
                }
            }
            Then::GoOn(events) => {
                let (session, cursor) = (events.book.session.clone(), events.cursor());
                let ahead = self.watched.get(&session).is_some_and(|one| one.position >= cursor);
                if !ahead {
                    self.begin(streams, session, events.book, cursor).await;
                }
            }
        }
    }

    async fn watch(&mut self, streams: &mut Streams, session: SessionId, from: Seq) {
        let book = match self.desk.history(&session).await {
            Ok(history) => history.book(from).await.ok(),
            Err(_) => None,
        };
        // A session that is gone again has nothing to tell.
        if let Some(book) = book {
            let cursor = Cursor { seq: from, offset: book.written };
            self.begin(streams, session, book, cursor).await;
        }
    }

    async fn begin(&mut self, streams: &mut Streams, session: SessionId, book: Book, from: Cursor) {
        let Ok(follow) = self.desk.ports.sessions.follow(&session, from).await else { return };
        self.round += 1;
        let watched = Watched { round: self.round, book, position: from };
        self.watched.insert(session.clone(), watched);
        streams.heard.push(listen(session, self.round, follow));
    }

    async fn tell(
        &mut self,
        socket: &mut WebSocket,
        streams: &mut Streams,
        heard: Heard,
    ) -> Result<(), Gone> {
        let (session, round, follow, items) = heard;
        let manner = self.manner;
        // It may have begun anew, or ended, meanwhile.
        let Some(watched) = self.watched.get_mut(&session).filter(|one| one.round == round) else {
            return Ok(());
        };
        match items {
            Ok(Some(items)) => {
                for item in items {
                    for frame in encode(&mut watched.book, manner, &item) {
                        send(socket, Frame::Text(frame.into())).await?;
                    }
                }
                watched.position = follow.position();
                streams.heard.push(listen(session, round, follow));
                Ok(())
            }
            Ok(None) => {
                self.watched.remove(&session);
                Ok(())
            }
            Err(error) => {
                self.watched.remove(&session);
                let status = match error {
                    Error::NotFound(_) => "deleted",
                    _ => "unavailable",
                };
                let news = News::both("session.status", json!({ "status": status }));
                match news.frame(manner, Some(session.as_str()), self.desk.now()) {
                    Some(frame) => send(socket, Frame::Text(frame.into())).await,
                    None => Ok(()),
                }
            }
        }
    }
}

/// Whether it waits for more than storage.
fn takes_longer(wish: &Wish) -> bool {
    matches!(wish, Wish::Abort(_) | Wish::Compact(_) | Wish::Delete(_) | Wish::Models)
}

fn split(done: Result<Done, jsonrpc::Error>) -> (Result<Value, jsonrpc::Error>, Then) {
    match done {
        Ok(Done { result, then }) => (Ok(result), then),
        Err(error) => (Err(error), Then::Nothing),
    }
}

fn listen(
    session: SessionId,
    round: u64,
    mut follow: Box<dyn Follow>,
) -> BoxFuture<'static, Heard> {
    Box::pin(async move {
        let items = follow.next().await;
        (session, round, follow, items)
    })
}

/// A client that does not read for too long is gone.
async fn send(socket: &mut WebSocket, frame: Frame) -> Result<(), Gone> {
    match timeout(PATIENCE, socket.send(frame)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}
