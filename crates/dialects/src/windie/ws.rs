//! One connection: a handshake, then messages in, and responses and notifications out.
//!
//! Messages are processed in order, and none of them waits for a model, so that tools and settings never wait
//! behind a query. Work that may take longer runs in parallel. Handlers put frames into the outbox, which is
//! sent after each of them.

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

use axum::extract::ws::{CloseCode, Message as Frame, WebSocket, close_code};
use axum::http::HeaderMap;
use quintet_kernel::port::{Error, StorageError};
use quintet_kernel::{ClientRef, SessionId};
use serde_json::json;
use tokio::task::JoinSet;
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
/// Slow requests of one connection that may run at once.
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
    /// Searches for places on the screen.
    searches: Searches,
    /// Answers that are spoken.
    speech: Speech,
    /// Slow requests that are running.
    running: JoinSet<FinishedRequest>,
    /// Frames to be sent.
    outbox: Vec<Frame>,
    /// Number of pings that were sent.
    pings: u64,
    /// The conversation of the last message.
    last: Option<String>,
    /// Ids of the histories that the client restored, by session.
    revisions: HashMap<SessionId, String>,
}

/// The answer to a slow request, and the turns that it stopped.
type FinishedRequest = (Answer, Vec<Stopping>);

/// The reason why a connection ends.
enum End {
    /// The client is gone, or has to connect again.
    Gone,
    /// The daemon closes the connection with this code and reason.
    Close(CloseCode, &'static str),
}

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
            let mut connection = Connection::new(app, headers, identity, agent);
            connection.serve(socket).await;
            connection.app.turns.disconnect(connection.number);
            connection.held.release().await;
        }
        Err(reason) => {
            tracing::warn!("a handshake is refused: {reason}");
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
    fn new(app: AppState, headers: HeaderMap, identity: ClientIdentity, agent: Agent) -> Self {
        let number = app.turns.connect();
        let client = Client { user: identity.id.clone(), agent: agent.definition.id.clone() };
        let agent_id = client.agent.as_deref().unwrap_or_default();
        let name = format!("{FRONT_END}/{}/{agent_id}", identity.id);
        let sessions = Arc::clone(&app.ports.sessions);
        Self {
            held: HeldCalls::new(sessions, ClientRef::connected(name, number.to_string())),
            app,
            identity,
            number,
            headers,
            agent,
            client,
            subscriptions: Vec::new(),
            searches: Searches::new(),
            speech: Speech::default(),
            running: JoinSet::new(),
            outbox: Vec::new(),
            pings: 0,
            last: None,
            revisions: HashMap::new(),
        }
    }

    async fn serve(&mut self, mut socket: WebSocket) {
        let closing = self.app.ports.closing.clone();
        let mut disconnected = self.app.turns.disconnected();
        let speaker = Arc::clone(&self.app.ports.speaker);
        self.welcome().await;
        let mut heartbeat = Heartbeat::new(PING_INTERVAL, PONG_TIMEOUT);
        let mut last_message = Instant::now();
        let mut step = Ok(());
        loop {
            for frame in self.outbox.drain(..) {
                if let Err(Gone) = send(&mut socket, frame).await {
                    return;
                }
            }
            match step {
                Ok(()) => {}
                Err(End::Gone) => return,
                Err(End::Close(code, reason)) => return close(&mut socket, code, reason).await,
            }
            step = tokio::select! {
                () = closing.cancelled() => Err(End::Close(close_code::AWAY, "shutting down")),
                () = sleep_until(last_message + RECEIVE_TIMEOUT) => {
                    Err(End::Close(close_code::POLICY, SILENT))
                }
                frame = socket.recv() => {
                    heartbeat.alive();
                    if matches!(frame, Some(Ok(Frame::Text(_) | Frame::Binary(_)))) {
                        last_message = Instant::now();
                    }
                    match frame {
                        Some(Ok(frame)) => self.receive(frame).await,
                        Some(Err(_)) | None => Err(End::Gone),
                    }
                }
                Some(finished) = self.running.join_next() => match finished {
                    Ok((answer, stops)) => {
                        self.stopped(stops);
                        self.answer(&answer);
                        self.flush_all().await
                    }
                    Err(error) => {
                        tracing::error!(%error, "a request broke off");
                        Err(End::Gone)
                    }
                },
                news = subscription::next(&mut self.subscriptions) => self.publish(news).await,
                located = coordinates::next(&mut self.searches) => match located {
                    Some(located) => self.hand_over(located).await,
                    None => Err(End::Gone),
                },
                spoken = self.speech.next(&speaker) => self.speak(spoken).await,
                // This client may run the calls of the connection that ended.
                Ok(()) = disconnected.changed() => self.flush_all().await,
                is_alive = heartbeat.due() => {
                    if !is_alive || self.is_revoked().await {
                        Err(End::Close(close_code::POLICY, ""))
                    } else {
                        self.outbox.push(Frame::Ping(Default::default()));
                        Ok(())
                    }
                }
            };
        }
    }

    /// Puts an answer into the outbox.
    fn answer(&mut self, answer: &Answer) {
        self.outbox.push(Frame::Text(answer.frame(self.app.now()).into()));
    }

    /// Sends the accepted tools of the client and the tools of the daemon, and follows the conversations
    /// that the client may have missed events of.
    async fn welcome(&mut self) {
        self.send_manifest();
        let settings = self.app.settings_of(&self.identity.id).await.unwrap_or_default();
        let remote = self.agent.selection(&settings, &self.app.abilities()).remote_tools();
        self.answer(&Answer::notification("remote-tool-catalog", remote));
        for (name, session) in self.app.waiting(&self.client).await {
            if let Err(error) = self.follow(&name, &session).await {
                tracing::warn!(%error, %session, "a conversation cannot be followed");
            }
        }
    }

    /// Sends which tools of the client were accepted, if it provides any.
    fn send_manifest(&mut self) {
        if let Some(manifest) = &self.agent.manifest {
            self.answer(&Answer::notification("client-tool-manifest", json!(manifest)));
        }
    }

    async fn receive(&mut self, frame: Frame) -> Result<(), End> {
        let decoded = match &frame {
            Frame::Text(text) => decode(text),
            Frame::Binary(bytes) => decode(std::str::from_utf8(bytes).unwrap_or_default()),
            Frame::Ping(_) => return Ok(()),
            Frame::Pong(echo) => {
                self.acknowledge(echo);
                return Ok(());
            }
            Frame::Close(_) => {
                self.acknowledge_all();
                return Err(End::Gone);
            }
        };
        if self.is_revoked().await {
            return Err(End::Close(close_code::POLICY, ""));
        }
        match decoded {
            Ok(Message { id, asks }) => {
                let about = self.about(&id, &asks);
                if let Err(error) = self.carry_out(id.clone(), asks).await {
                    self.answer(&Answer::error(Some(&id), &error.message()).about(about));
                }
            }
            Err(answer) => self.answer(&answer),
        }
        Ok(())
    }

    /// True if the client's token was revoked since it connected.
    async fn is_revoked(&self) -> bool {
        self.app.identify(&self.headers).await.is_err_and(|refused| refused.is_final())
    }

    async fn carry_out(&mut self, id: String, asks: Asks) -> Result<(), RequestError> {
        let is_slow = matches!(asks, Asks::ListModels | Asks::Compact { .. });
        if is_slow && self.running.len() >= CONCURRENT_REQUESTS_LIMIT {
            return Err(TOO_MANY.into());
        }
        match asks {
            Asks::Query(query) => self.query(&id, *query).await,
            Asks::Stop { conversation, turn } => self.stop(id, conversation, turn).await,
            Asks::Rehydrate(stored) => self.rehydrate(stored).await,
            Asks::LoadSettings => self.load_settings(&id).await,
            Asks::UpdateSettings(patch) => self.update_settings(&id, *patch).await,
            Asks::ListModels => {
                self.running.spawn(list_models(self.app.clone(), self.identity.id.clone(), id));
                Ok(())
            }
            Asks::ToolResult(result) => self.tool_result(result).await,
            Asks::BundleResult(result) => self.bundle_result(result).await,
            Asks::Wakeword => self.greet(&id).await,
            Asks::Compact { conversation, .. } => self.compact(&id, conversation).await,
        }
    }

    async fn greet(&mut self, id: &str) -> Result<(), RequestError> {
        let settings = self.app.settings_of(&self.identity.id).await?;
        let voice = self.app.voice();
        let [activated, greeting] = wire::awake(id, &settings, voice);
        if settings.speech_mode_enabled && voice.speech {
            self.speech.greet(id, greeting.payload["text"].as_str().unwrap_or_default());
        }
        self.answer(&activated);
        self.answer(&greeting);
        Ok(())
    }

    /// The context of an error about a message.
    fn about(&self, id: &str, asks: &Asks) -> Context {
        let conversation_ref = match asks {
            Asks::Query(query) => Some(query.conversation.clone()),
            Asks::Rehydrate(stored) => Some(stored.conversation.clone()),
            Asks::Stop { conversation, .. } | Asks::Compact { conversation, .. } => {
                conversation.clone()
            }
            _ => None,
        };
        self.context(conversation_ref, matches!(asks, Asks::Query(_)).then(|| id.to_owned()))
    }

    fn context(&self, conversation_ref: Option<String>, turn_ref: Option<String>) -> Context {
        let user_id = Some(self.identity.id.clone());
        Context { session_id: None, user_id, conversation_ref, turn_ref }
    }
}

async fn list_models(app: AppState, user: String, id: String) -> FinishedRequest {
    let answer = match app.settings_of(&user).await {
        Ok(settings) => {
            let listed = models::payload(&app.ports.models.list().await, &settings);
            Answer::to(&id, "models-listed", listed)
        }
        Err(error) => Answer::error(Some(&id), &error.to_string()),
    };
    (answer, Vec::new())
}

/// The reason why a message was not carried out.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("{0}")]
    Message(&'static str),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Core(#[from] Error),
}

impl RequestError {
    /// The message for the client, without internals of the daemon.
    fn message(&self) -> String {
        match self {
            Self::Message(message) => (*message).into(),
            Self::Settings(error) => {
                tracing::warn!(%error, "a user's settings");
                error.to_string()
            }
            Self::Core(Error::Refused(refusal)) => format!("Invalid request: {refusal}"),
            Self::Core(Error::NotFound(_)) => "Conversation not found".into(),
            Self::Core(error) => {
                tracing::warn!(%error, "a message could not be carried out");
                "An internal error occurred. Please try again.".into()
            }
        }
    }
}

impl From<&'static str> for RequestError {
    fn from(message: &'static str) -> Self {
        Self::Message(message)
    }
}

impl From<StorageError> for RequestError {
    fn from(error: StorageError) -> Self {
        Self::Core(error.into())
    }
}
