//! One connection: a handshake, then messages in, and responses and notifications out.
//!
//! Messages are processed in order, and none of them waits for a model, so that tools and settings never wait
//! behind a query. Work that may take longer runs in parallel.

pub(crate) mod acknowledged;
pub(crate) mod active_turns;
mod compact;
mod coordinates;
pub(crate) mod early_stops;
mod pictures;
mod query;
mod rehydrate;
mod settings;
mod speech;
mod stop;
mod subscription;
mod tool_results;
pub(crate) mod transcription;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message as Frame, WebSocket, close_code};
use axum::http::HeaderMap;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quintet_kernel::port::{BoxFuture, Error, StorageError};
use quintet_kernel::{ClientRef, SessionId};
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use super::agent::tool_selection::FRONT_END;
use super::agent::turn_setup::Agent;
use super::conversation::ClientIdentity;
use super::decode::{Asks, Message, decode, handshake};
use super::serve::AppState;
use super::wire;
use super::wire::models;
use super::wire::user_settings::SettingsError;
use super::wire::{Answer, Context, SILENT, TOO_MANY};
use crate::held_calls::HeldCalls;
use crate::transport::ws::{Gone, Heartbeat, close, send};
use acknowledged::Client;
use coordinates::Searches;
use speech::Speech;
use stop::Stopping;
use subscription::Subscription;

/// The longest time without a message of the client.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(3600);
/// The longest time until the handshake of a client.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PONG_TIMEOUT: Duration = Duration::from_secs(90);
/// Requests of one connection that may be under way at once, besides those that take but a moment.
const CONCURRENT_REQUESTS_LIMIT: usize = 50;

pub(super) struct Connection {
    app: AppState,
    identity: ClientIdentity,
    number: u64,
    /// The headers of the handshake, checked again while the token may be revoked.
    headers: HeaderMap,
    agent: Agent,
    /// The client, on whatever connection.
    client: Client,
    /// The calls that the client runs.
    held: HeldCalls,
    /// The conversations that the client follows.
    subscriptions: Vec<Subscription>,
    /// Frames whose places on the screen are being looked for.
    searches: Searches,
    /// What is read aloud.
    speech: Speech,
    /// The number of pings that were sent.
    pings: u64,
    /// The conversation of the last message.
    last: Option<String>,
    /// Histories that the client brought back, by the sessions that have them.
    revisions: HashMap<SessionId, String>,
}

/// Answers and frames that are still to be sent, and requests that are still to be finished.
#[derive(Default)]
struct PendingOutput {
    answers: Vec<Answer>,
    frames: Vec<String>,
    slow: Vec<BoxFuture<'static, FinishedRequest>>,
}

/// The result of a request that took longer.
#[derive(Default)]
struct FinishedRequest {
    answers: Vec<Answer>,
    stops: Vec<Stopping>,
}

/// The requests of a connection that are under way.
type RunningRequests = FuturesUnordered<BoxFuture<'static, FinishedRequest>>;

/// Serves a client once its handshake was accepted.
pub(super) async fn run(app: AppState, headers: HeaderMap, mut socket: WebSocket) {
    let user = match app.identify(&headers).await {
        Ok(user) => user,
        Err(refused) => {
            tracing::warn!("a connection is refused: {}", refused.message());
            return close(&mut socket, close_code::POLICY, "").await;
        }
    };
    let Some(first) = first(&mut socket).await else { return };
    match handshake(&first) {
        Ok(hello) => {
            let identity = ClientIdentity::new(user, hello.user);
            let agent = Agent::new(hello.definition.unwrap_or_default());
            let client = Client { user: identity.id.clone(), agent: agent.definition.id.clone() };
            let (turns, number) = (Arc::clone(&app.turns), app.turns.connect());
            let called = client.agent.as_deref().unwrap_or_default();
            let called = format!("{FRONT_END}/{}/{called}", identity.id);
            let held = HeldCalls::new(
                Arc::clone(&app.ports.sessions),
                ClientRef::connected(called, number.to_string()),
            );
            let (subscriptions, searches, speech, pings, last, revisions) = Default::default();
            let mut connection = Connection {
                app,
                identity,
                number,
                headers,
                agent,
                client,
                held,
                subscriptions,
                searches,
                speech,
                pings,
                last,
                revisions,
            };
            connection.serve(socket).await;
            turns.disconnect(number);
            connection.held.release().await;
        }
        Err(why) => {
            tracing::warn!("a handshake is refused: {why}");
            close(&mut socket, close_code::POLICY, "").await;
        }
    }
}

async fn first(socket: &mut WebSocket) -> Option<String> {
    loop {
        match timeout(HANDSHAKE_TIMEOUT, socket.recv()).await {
            Ok(Some(Ok(Frame::Text(text)))) => return Some(text.to_string()),
            Ok(Some(Ok(Frame::Binary(_)))) | Err(_) => {
                close(socket, close_code::POLICY, "").await;
                return None;
            }
            Ok(Some(Ok(Frame::Ping(_) | Frame::Pong(_)))) => {}
            Ok(Some(Ok(Frame::Close(_)) | Err(_)) | None) => return None,
        }
    }
}

impl Connection {
    async fn serve(&mut self, mut socket: WebSocket) {
        let closing = self.app.ports.closing.clone();
        let mut disconnected = self.app.turns.disconnected();
        let speaker = Arc::clone(&self.app.ports.speaker);
        let mut slow = RunningRequests::default();
        let out = self.welcome().await;
        if self.give(&mut socket, &mut slow, out).await.is_err() {
            return;
        }
        let (mut heartbeat, mut last) =
            (Heartbeat::new(PING_INTERVAL, PONG_TIMEOUT), Instant::now());
        loop {
            let step = tokio::select! {
                () = closing.cancelled() => {
                    return close(&mut socket, close_code::AWAY, "shutting down").await;
                }
                () = sleep_until(last + RECEIVE_TIMEOUT) => {
                    return close(&mut socket, close_code::POLICY, SILENT).await;
                }
                frame = socket.recv() => {
                    heartbeat.alive();
                    if matches!(frame, Some(Ok(Frame::Text(_) | Frame::Binary(_)))) {
                        last = Instant::now();
                    }
                    match frame {
                        Some(Ok(frame)) => self.receive(&mut socket, &mut slow, frame).await,
                        Some(Err(_)) | None => return,
                    }
                }
                Some(FinishedRequest { answers, stops }) = slow.next() => {
                    self.stopped(stops);
                    let out = PendingOutput { answers, ..PendingOutput::default() };
                    match self.give(&mut socket, &mut slow, out).await {
                        Ok(()) => self.flush_all(&mut socket).await,
                        Err(gone) => Err(gone),
                    }
                }
                news = subscription::next(&mut self.subscriptions) => {
                    self.tell(&mut socket, news).await
                }
                located = coordinates::next(&mut self.searches) => match located {
                    Some(located) => self.hand_over(&mut socket, located).await,
                    None => Err(Gone),
                },
                spoken = self.speech.next(&speaker) => self.speak(&mut socket, spoken).await,
                // What the client of that connection was to run, this one may run.
                Ok(()) = disconnected.changed() => self.flush_all(&mut socket).await,
                there = heartbeat.due() => {
                    if !there || self.is_revoked().await {
                        return close(&mut socket, close_code::POLICY, "").await;
                    }
                    send(&mut socket, Frame::Ping(Default::default())).await
                }
            };
            if step.is_err() {
                return;
            }
        }
    }

    /// What a client hears first: what became of its tools, which tools the daemon has, and how far
    /// the turns are that it may have been away from.
    async fn welcome(&mut self) -> PendingOutput {
        let mut out = PendingOutput::default();
        out.answers.extend(self.brought());
        out.answers.push(self.remote().await);
        for (name, session) in self.app.waiting(&self.client).await {
            if let Err(error) = self.follow(&name, &session).await {
                tracing::warn!(%error, %session, "a conversation cannot be told");
            }
        }
        out
    }

    /// What became of the tools that the client brings, if it brings any.
    fn brought(&self) -> Option<Answer> {
        let manifest = self.agent.manifest.as_ref()?;
        Some(Answer::unasked("client-tool-manifest", json!(manifest)))
    }

    async fn remote(&self) -> Answer {
        let settings = self.app.settings_of(&self.identity.id).await.unwrap_or_default();
        let remote = self.agent.selection(&settings, &self.app.abilities()).remote_tools();
        Answer::unasked("remote-tool-catalog", remote)
    }

    async fn receive(
        &mut self,
        socket: &mut WebSocket,
        slow: &mut RunningRequests,
        frame: Frame,
    ) -> Result<(), Gone> {
        let read = match &frame {
            Frame::Text(text) => decode(text),
            Frame::Binary(bytes) => decode(std::str::from_utf8(bytes).unwrap_or_default()),
            Frame::Ping(_) => return Ok(()),
            Frame::Pong(echo) => {
                self.answered(echo);
                return Ok(());
            }
            Frame::Close(_) => {
                self.parted();
                return Err(Gone);
            }
        };
        if self.is_revoked().await {
            close(socket, close_code::POLICY, "").await;
            return Err(Gone);
        }
        let mut out = PendingOutput::default();
        match read {
            Ok(message) => self.carry_out(message, slow.len(), &mut out).await,
            Err(answer) => out.answers.push(*answer),
        }
        self.give(socket, slow, out).await
    }

    /// True if the client's token was revoked since it connected.
    async fn is_revoked(&self) -> bool {
        self.app.identify(&self.headers).await.is_err_and(|refused| refused.is_final())
    }

    async fn carry_out(&mut self, message: Message, under_way: usize, out: &mut PendingOutput) {
        let Message { id, asks } = message;
        let about = self.about(&id, &asks);
        let heavy = matches!(asks, Asks::ListModels | Asks::Compact { .. });
        let done = match asks {
            _ if heavy && under_way >= CONCURRENT_REQUESTS_LIMIT => Err(Trouble::from(TOO_MANY)),
            Asks::Query(query) => self.query(&id, *query).await,
            Asks::Stop { conversation, turn } => self.stop(&id, (conversation, turn), out).await,
            Asks::Rehydrate(kept) => self.recall(kept).await,
            Asks::LoadSettings => self.load_settings(&id, out).await,
            Asks::UpdateSettings(patch) => self.update_settings(&id, *patch, out).await,
            Asks::ListModels => {
                let (app, user) = (self.app.clone(), self.identity.id.clone());
                out.slow.push(Box::pin(async move {
                    let answer = match app.settings_of(&user).await {
                        Ok(settings) => {
                            let listed = models::payload(&app.ports.models.list().await, &settings);
                            Answer::to(&id, "models-listed", listed)
                        }
                        Err(error) => Answer::error(Some(&id), &error.to_string()),
                    };
                    FinishedRequest { answers: vec![answer], ..FinishedRequest::default() }
                }));
                return;
            }
            Asks::ToolResult(result) => self.result(result).await,
            Asks::BundleResult(result) => self.bundle_result(result).await,
            Asks::Wakeword => match self.app.settings_of(&self.identity.id).await {
                Ok(settings) => {
                    let voice = self.app.voice();
                    let [activated, greeting] = wire::awake(&id, &settings, voice);
                    let words = greeting.payload["text"].as_str().unwrap_or_default();
                    if settings.speech_mode_enabled && voice.speech {
                        self.speech.greet(&id, words);
                    }
                    out.answers.extend([activated, greeting]);
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
        let user_id = Some(self.identity.id.clone());
        Context { session_id: None, user_id, conversation_ref, turn_ref }
    }

    async fn give(
        &mut self,
        socket: &mut WebSocket,
        slow: &mut RunningRequests,
        out: PendingOutput,
    ) -> Result<(), Gone> {
        let now = self.app.now();
        for answer in out.answers {
            send(socket, Frame::Text(answer.frame(now).into())).await?;
        }
        for frame in out.frames {
            send(socket, Frame::Text(frame.into())).await?;
        }
        slow.extend(out.slow);
        Ok(())
    }
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
