//! One connection: a handshake, then messages in, and answers and news out.
//!
//! Messages are carried out one after the other, and none of them waits for a model: so what a client
//! says of its tools and settings is never behind a query. What may take longer than a moment goes on
//! beside.

mod adopt;
mod compact;
mod echo;
mod query;
mod recall;
mod results;
mod settings;
mod stop;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, close_code};
use axum::http::HeaderMap;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quintet_kernel::ClientRef;
use quintet_kernel::port::{BoxFuture, Error, StorageError};
use tokio::time::{Instant, interval, sleep_until, timeout};

use self::echo::Echoes;
use super::conversation::Guest;
use super::decode::{Asks, Message, decode, handshake};
use super::manifest::Manifest;
use super::models;
use super::offer::{FRONT_END, Offer};
use super::plan::Agent;
use super::room::{self, Offered, Room, Seat, Sent, Who};
use super::rooms::Name;
use super::serve::Desk;
use super::settings::SettingsError;
use super::wire::{self, Answer, Context, SILENT, TOO_MANY};
use crate::held_calls::HeldCalls;

/// How long a client may be silent.
const RECEIVE: Duration = Duration::from_secs(3600);
/// How long it may take to say who it is.
const HELLO: Duration = Duration::from_secs(60);
/// How often it is asked whether it is there.
const PING: Duration = Duration::from_secs(30);
/// How long it may leave that unanswered.
const SILENCE: Duration = Duration::from_secs(90);
/// How long it may take to read one frame.
const PATIENCE: Duration = Duration::from_secs(30);
/// What may be under way at once, beside what takes but a moment.
const MOST: usize = 50;

/// One connection.
pub(super) struct Connection {
    desk: Desk,
    guest: Guest,
    /// Which one it is.
    number: u64,
    /// What it came with, which says who it is for as long as that is true.
    headers: HeaderMap,
    agent: Agent,
    /// What the client called its agent when it came.
    name: room::Client,
    /// The calls that it runs.
    held: HeldCalls,
    /// The conversations that it listens to, by its names for them.
    listens: Vec<(String, Arc<Room>)>,
    /// What it was sent and has perhaps not heard.
    echoes: Echoes,
    /// The one that it spoke of last.
    last: Option<String>,
}

/// What came of messages, and is still to be sent or waited for.
#[derive(Default)]
struct Out {
    answers: Vec<Answer>,
    frames: Vec<String>,
    seats: Vec<Seat>,
    slow: Vec<BoxFuture<'static, Vec<Answer>>>,
}

/// What a listener was given.
type Heard = (Seat, Option<Vec<Sent>>);

#[derive(Default)]
struct Streams {
    heard: FuturesUnordered<BoxFuture<'static, Heard>>,
    slow: FuturesUnordered<BoxFuture<'static, Vec<Answer>>>,
}

/// The client is gone, or is to go.
struct Gone;

/// Serves a client that may come in, if it says who it is.
pub(super) async fn run(desk: Desk, headers: HeaderMap, mut socket: WebSocket) {
    let user = match desk.identify(&headers).await {
        Ok(user) => user,
        Err(refused) => {
            tracing::debug!("a connection is refused: {}", refused.message());
            return hang_up(&mut socket, close_code::POLICY, "").await;
        }
    };
    let Some(first) = first(&mut socket).await else { return };
    match handshake(&first) {
        Ok(hello) => {
            let guest = Guest::new(user, hello.user);
            let agent = Agent::new(hello.definition.unwrap_or_default());
            let name = agent.definition.id.clone();
            let number = desk.rooms.connection();
            let (listens, echoes, last) = Default::default();
            let called = name.as_deref().unwrap_or_default();
            let called = format!("{FRONT_END}/{}/{called}", guest.id);
            let client = ClientRef::connected(called, number.to_string());
            let held = HeldCalls::new(Arc::clone(&desk.ports.sessions), client);
            let mut connection = Connection {
                desk,
                guest,
                number,
                headers,
                agent,
                name,
                held,
                listens,
                echoes,
                last,
            };
            connection.serve(socket).await;
            connection.held.release().await;
        }
        Err(why) => {
            tracing::debug!("a handshake is refused: {why}");
            hang_up(&mut socket, close_code::POLICY, "").await;
        }
    }
}

async fn first(socket: &mut WebSocket) -> Option<String> {
    loop {
        match timeout(HELLO, socket.recv()).await {
            Ok(Some(Ok(Frame::Text(text)))) => return Some(text.to_string()),
            Ok(Some(Ok(Frame::Binary(_)))) | Err(_) => {
                hang_up(socket, close_code::POLICY, "").await;
                return None;
            }
            Ok(Some(Ok(Frame::Ping(_) | Frame::Pong(_)))) => {}
            Ok(Some(Ok(Frame::Close(_)) | Err(_)) | None) => return None,
        }
    }
}

impl Connection {
    async fn serve(&mut self, mut socket: WebSocket) {
        let closing = self.desk.settings.closing.clone();
        let mut streams = Streams::default();
        let out = self.welcome().await;
        if self.give(&mut socket, &mut streams, out).await.is_err() {
            return;
        }
        let (mut ping, mut last) = (interval(PING), Instant::now());
        let mut alive = last;
        loop {
            let step = tokio::select! {
                () = closing.cancelled() => {
                    return hang_up(&mut socket, close_code::AWAY, "shutting down").await;
                }
                () = sleep_until(last + RECEIVE) => {
                    return hang_up(&mut socket, close_code::POLICY, SILENT).await;
                }
                frame = socket.recv() => {
                    alive = Instant::now();
                    if matches!(frame, Some(Ok(Frame::Text(_) | Frame::Binary(_)))) {
                        last = alive;
                    }
                    match frame {
                        Some(Ok(frame)) => self.receive(&mut socket, &mut streams, frame).await,
                        Some(Err(_)) | None => return,
                    }
                }
                Some(answers) = streams.slow.next() => {
                    let out = Out { answers, ..Out::default() };
                    self.give(&mut socket, &mut streams, out).await
                }
                Some(heard) = streams.heard.next() => {
                    self.tell(&mut socket, &mut streams, heard).await
                }
                _ = ping.tick() => match alive.elapsed() > SILENCE || self.is_revoked().await {
                    true => return hang_up(&mut socket, close_code::POLICY, "").await,
                    false => send(&mut socket, Frame::Ping(Default::default())).await,
                },
            };
            if step.is_err() {
                return;
            }
        }
    }

    /// What a client hears first: what became of its tools, which tools the daemon has, and how far
    /// the turns are that it may have been away from.
    async fn welcome(&mut self) -> Out {
        let mut out = Out::default();
        out.answers.extend(self.brought());
        out.answers.push(self.remote().await);
        for (name, room) in self.desk.waiting(&self.guest, &self.name).await {
            self.listen(&name, &room, &mut out);
        }
        out
    }

    /// What became of the tools that the client brings, if it brings any.
    fn brought(&self) -> Option<Answer> {
        let payload = self.agent.manifest.as_ref().map(Manifest::payload)?;
        Some(Answer::unasked("client-tool-manifest", payload))
    }

    async fn remote(&self) -> Answer {
        let settings = self.desk.settings_of(&self.guest.id).await.unwrap_or_default();
        let nothing = Manifest::default();
        let offer = Offer {
            definition: &self.agent.definition,
            manifest: self.agent.manifest.as_ref().unwrap_or(&nothing),
            settings: &settings,
            abilities: &self.desk.settings.abilities,
        };
        Answer::unasked("remote-tool-catalog", offer.remote_tools())
    }

    /// Listens to a conversation, unless it does already; from now on it has this name.
    fn listen(&mut self, name: &Name, room: &Arc<Room>, out: &mut Out) {
        let known = self.listens.iter_mut().find(|(_, known)| Arc::ptr_eq(known, room));
        match known {
            Some((conversation, _)) => conversation.clone_from(&name.1),
            None => {
                self.listens.push((name.1.clone(), Arc::clone(room)));
                let who = Who { connection: self.number, client: self.name.clone() };
                out.seats.push(room.sit(who));
            }
        }
    }

    /// A frame as it is sent: the client hears its own name for the conversation.
    fn addressed<'f>(&self, room: &Arc<Room>, frame: &'f str) -> Cow<'f, str> {
        let name = self.listens.iter().find(|(_, known)| Arc::ptr_eq(known, room));
        match name.filter(|(name, _)| *name != room.conversation) {
            Some((name, _)) => Cow::Owned(wire::renamed(frame, name)),
            None => Cow::Borrowed(frame),
        }
    }

    /// Whoever speaks of a conversation that is told wants to hear it.
    fn attend(&mut self, conversation: Option<&str>, out: &mut Out) {
        let Some(conversation) = conversation else { return };
        let name = (self.guest.id.clone(), conversation.to_owned());
        if let Some(room) = self.desk.rooms.of(&name) {
            self.listen(&name, &room, out);
        }
    }

    async fn receive(
        &mut self,
        socket: &mut WebSocket,
        streams: &mut Streams,
        frame: Frame,
    ) -> Result<(), Gone> {
        let read = match &frame {
            Frame::Text(text) => decode(text),
            Frame::Binary(bytes) => decode(std::str::from_utf8(bytes).unwrap_or_default()),
            Frame::Ping(_) => return Ok(()),
            Frame::Pong(echo) => {
                self.echoes.came(echo, &self.name);
                return Ok(());
            }
            Frame::Close(_) => {
                self.echoes.parted(&self.name);
                return Err(Gone);
            }
        };
        if self.is_revoked().await {
            hang_up(socket, close_code::POLICY, "").await;
            return Err(Gone);
        }
        let mut out = Out::default();
        match read {
            Ok(message) => self.carry_out(message, streams.slow.len(), &mut out).await,
            Err(answer) => out.answers.push(*answer),
        }
        self.give(socket, streams, out).await
    }

    /// Whether it is not any more who it was.
    async fn is_revoked(&self) -> bool {
        self.desk.identify(&self.headers).await.is_err_and(|refused| refused.is_final())
    }

    async fn carry_out(&mut self, message: Message, under_way: usize, out: &mut Out) {
        let Message { id, asks } = message;
        let about = self.about(&id, &asks);
        self.attend(about.conversation_ref.as_deref(), out);
        let heavy = matches!(asks, Asks::ListModels | Asks::Compact { .. });
        let done = match asks {
            _ if heavy && under_way >= MOST => Err(Trouble::from(TOO_MANY)),
            Asks::Query(query) => self.query(&id, *query, out).await,
            Asks::Stop { conversation, turn } => self.stop(&id, (conversation, turn), out).await,
            Asks::Rehydrate(kept) => self.recall(kept).await,
            Asks::LoadSettings => self.load_settings(&id, out).await,
            Asks::UpdateSettings(patch) => self.update_settings(&id, *patch, out).await,
            Asks::ListModels => {
                let (desk, user) = (self.desk.clone(), self.guest.id.clone());
                out.slow.push(Box::pin(async move {
                    let settings = match desk.settings_of(&user).await {
                        Ok(settings) => settings,
                        Err(error) => return vec![Answer::error(Some(&id), &error.to_string())],
                    };
                    let listed = models::payload(&desk.ports.models.list().await, &settings);
                    vec![Answer::to(&id, "models-listed", listed)]
                }));
                return;
            }
            Asks::ToolResult(result) => self.result(result).await,
            Asks::BundleResult(result) => self.bundle_result(result).await,
            Asks::Wakeword => match self.desk.settings_of(&self.guest.id).await {
                Ok(settings) => {
                    out.answers.extend(wire::awake(&id, &settings));
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
            Asks::Compact { conversation, .. } => self.compact(&id, conversation, out).await,
        };
        if let Err(trouble) = done {
            out.answers.push(Answer::error(Some(&id), &trouble.message()).about(about));
        }
    }

    /// What an error about a message is about.
    fn about(&self, id: &str, asks: &Asks) -> Context {
        let conversation_ref = match asks {
            Asks::Query(query) => Some(query.conversation.clone()),
            Asks::Rehydrate(kept) => Some(kept.conversation.clone()),
            Asks::Stop { conversation, .. } | Asks::Compact { conversation, .. } => {
                conversation.clone()
            }
            _ => None,
        };
        let turn_ref = matches!(asks, Asks::Query(_)).then(|| id.to_owned());
        let user_id = Some(self.guest.id.clone());
        Context { session_id: None, user_id, conversation_ref, turn_ref }
    }

    /// The message that hands calls over if this client may run them, or else the one that only shows
    /// them. Where that is not known the client has to come back.
    async fn take(&mut self, seat: &Seat, offer: Offered) -> Result<Arc<str>, Gone> {
        let Offered { calls, text, shown } = offer;
        match self.held.take_over(&seat.room.session, calls.clone()).await {
            Ok(true) => {
                seat.room.claimed(&calls);
                Ok(text)
            }
            Ok(false) => Ok(shown),
            Err(error) => {
                tracing::warn!(%error, "calls were not claimed");
                Err(Gone)
            }
        }
    }

    async fn give(
        &mut self,
        socket: &mut WebSocket,
        streams: &mut Streams,
        out: Out,
    ) -> Result<(), Gone> {
        let now = self.desk.now();
        for answer in out.answers {
            send(socket, Frame::Text(answer.frame(now).into())).await?;
        }
        for frame in out.frames {
            send(socket, Frame::Text(frame.into())).await?;
        }
        streams.slow.extend(out.slow);
        streams.heard.extend(out.seats.into_iter().map(hear));
        Ok(())
    }

    async fn tell(
        &mut self,
        socket: &mut WebSocket,
        streams: &mut Streams,
        heard: Heard,
    ) -> Result<(), Gone> {
        let (seat, frames) = heard;
        let Some(frames) = frames else {
            self.listens.retain(|(_, room)| !Arc::ptr_eq(room, &seat.room));
            // One that was not told to the end is asked for again by a client that comes back.
            let missed = seat.is_behind() || seat.room.busy() > 0;
            return if missed { Err(Gone) } else { Ok(()) };
        };
        for sent in frames {
            let frame = match sent {
                Sent::Text(text) => text,
                Sent::Offer(offer) => self.take(&seat, offer).await?,
            };
            let frame = self.addressed(&seat.room, &frame).into_owned();
            send(socket, Frame::Text(frame.into())).await?;
        }
        if let Some(call) = self.echoes.sent(&seat) {
            send(socket, Frame::Ping(call)).await?;
        }
        streams.heard.push(hear(seat));
        Ok(())
    }
}

fn hear(mut seat: Seat) -> BoxFuture<'static, Heard> {
    Box::pin(async move {
        let frames = seat.next().await;
        (seat, frames)
    })
}

async fn send(socket: &mut WebSocket, frame: Frame) -> Result<(), Gone> {
    match timeout(PATIENCE, socket.send(frame)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

async fn hang_up(socket: &mut WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = timeout(PATIENCE, socket.send(Frame::Close(Some(frame)))).await;
}

/// Why a message was not carried out.
#[derive(Debug)]
enum Trouble {
    /// In words for the client.
    Said(String),
    /// The core's words, of which a client is told no more than it needs.
    Core(Error),
}

impl Trouble {
    fn message(&self) -> String {
        match self {
            Self::Said(words) => words.clone(),
            Self::Core(Error::Refused(refusal)) => format!("Invalid request: {refusal}"),
            Self::Core(Error::NotFound(_)) => "Conversation not found".into(),
            Self::Core(error) => {
                tracing::warn!(%error, "a message could not be carried out");
                "An internal error occurred. Please try again.".into()
            }
        }
    }
}

impl From<&str> for Trouble {
    fn from(words: &str) -> Self {
        Self::Said(words.into())
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<SettingsError> for Trouble {
    fn from(error: SettingsError) -> Self {
        tracing::warn!(%error, "a user's settings");
        Self::Said(error.to_string())
    }
}

impl From<StorageError> for Trouble {
    fn from(error: StorageError) -> Self {
        Self::Core(error.into())
    }
}
