//! Moves bytes: requests to `decode`, commands to the core or prompts to a provider, and answers through
//! `encode` to the client.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use quintet_kernel::command::Command;
use quintet_kernel::model::ModelRef;
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::{RunId, SessionId, TurnId};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::decode::{self, BODY_LIMIT, Generation, REFUSALS, ROUTES, Route, Target};
use super::encode::chat::Head;
use super::reply::Reply;
use super::wire::seconds;
use super::{agent, audio, embeddings, models, proxy, responses};
use crate::dialect::Services;
use crate::transport::access::Denied;
use crate::transport::body::{BodyError, read_body};
use crate::transport::query::parameter;
use crate::transport::routes;

/// The interval of keep-alives on a stream without events.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// The reason for cancelling a run whose client has disconnected.
const DISCONNECTED: &str = "the client disconnected";

/// The settings of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The workspace of agents whose clients name none; created when it is first needed.
    pub(super) workspace: PathBuf,
    /// The model of agents whose clients name none.
    pub(super) default_model: ModelRef,
    /// Time that an agent waits for a call that its client runs; no limit if `None`.
    pub(super) tool_timeout: Option<Duration>,
}

#[derive(Clone)]
pub(super) struct AppState {
    pub(super) services: Arc<Services>,
    pub(super) settings: Arc<Settings>,
    /// The start of the daemon, reported as the creation time of models.
    pub(super) started: i64,
    /// Tasks that run after a client has disconnected.
    pub(super) tasks: TaskTracker,
}

/// The router of the protocol.
pub(super) fn router(services: Arc<Services>, settings: Settings) -> Router {
    let started = seconds(services.clock.now());
    let (settings, tasks) = (Arc::new(settings), TaskTracker::new());
    let app = AppState { services, settings, started, tasks };
    routes::router(ROUTES, REFUSALS, serve).with_state(app)
}

async fn serve(app: AppState, route: Result<Route, Reply>, request: Request) -> Response {
    let id = app.request_id();
    let response = match route {
        Ok(route) => app.respond(route, request).await,
        Err(refused) => Err(refused),
    };
    let mut response = response.unwrap_or_else(|reply| error_response(&reply));
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
    response
}

impl AppState {
    async fn respond(&self, route: Route, request: Request) -> Result<Response, Reply> {
        match route {
            Route::Models => Ok(ok(&models::list(self).await)),
            Route::Model => {
                let path = request.uri().path();
                let name = path.strip_prefix("/v1/models/").unwrap_or_default();
                Ok(ok(&models::find(self, &percent_decoded(name)).await?))
            }
            Route::Chat => {
                let body = json(request).await?;
                let chat = decode::chat::decode(&body)?;
                self.check(&chat.generation)?;
                match chat.generation.target.clone() {
                    Target::Proxy(model) => proxy::chat(self, chat, model).await,
                    Target::Agent(_) => agent::chat(self, chat).await,
                }
            }
            Route::Respond => {
                let body = json(request).await?;
                let decoded = decode::responses::decode(&body)?;
                self.check(&decoded.generation)?;
                match decoded.generation.target.clone() {
                    Target::Proxy(model) => proxy::respond(self, decoded, model).await,
                    Target::Agent(_) => responses::create(self, decoded).await,
                }
            }
            Route::Response(id) => {
                let query = request.uri().query().unwrap_or_default();
                responses::retrieve(self, &id, query).await
            }
            Route::CancelResponse(id) => responses::cancel(self, &id).await,
            Route::DeleteResponse(id) => responses::delete(self, &id).await,
            Route::InputItems(id) => {
                let query = request.uri().query().unwrap_or_default();
                responses::input_items(self, &id, parameter(query, "order").as_deref()).await
            }
            Route::Embeddings => {
                let request = decode::senses::embeddings(&json(request).await?)?;
                Ok(ok(&embeddings::embed(&*self.services.embedder, request).await?))
            }
            Route::Transcriptions => audio::transcribe(&*self.services.transcriber, request).await,
            Route::Speech => {
                let request = decode::senses::speech(&json(request).await?)?;
                audio::speak(&*self.services.speaker, request).await
            }
        }
    }

    /// Fails if the provider of the model is not configured.
    fn check(&self, generation: &Generation) -> Result<(), Reply> {
        let model = generation.target.model().unwrap_or(&self.settings.default_model);
        match self.services.models.profile(model) {
            Some(_) => Ok(()),
            None => Err(Reply::unknown_model(&generation.model)),
        }
    }

    /// The fields that all chunks of a new answer share.
    pub(super) fn head(&self, model: &str) -> Head {
        let stamp = self.services.clock.stamp();
        let id = format!("chatcmpl-{}", stamp.id::<RunId>());
        Head { id, created: seconds(stamp.at), model: model.into() }
    }

    fn request_id(&self) -> String {
        format!("req_{}", self.services.clock.stamp().id::<RunId>())
    }

    /// Cancels a turn when dropped, unless it is released.
    pub(super) fn cancel_on_drop(&self, session: &SessionId, turn: &TurnId) -> CancelOnDrop {
        CancelOnDrop {
            sessions: Arc::clone(&self.services.sessions),
            tasks: self.tasks.clone(),
            turn: Some((session.clone(), turn.clone())),
        }
    }
}

/// A turn that a client waits for; it is cancelled when the client goes away.
pub(super) struct CancelOnDrop {
    sessions: Arc<dyn Sessions>,
    tasks: TaskTracker,
    turn: Option<(SessionId, TurnId)>,
}

impl std::fmt::Debug for CancelOnDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelOnDrop").field("turn", &self.turn).finish_non_exhaustive()
    }
}

impl CancelOnDrop {
    /// Keeps the turn, because it has ended or continues without a client.
    pub(super) fn release(&mut self) {
        self.turn = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((session, turn)) = self.turn.take() else { return };
        let sessions = Arc::clone(&self.sessions);
        self.tasks.spawn(async move { cancel_turn(&*sessions, &session, turn).await });
    }
}

/// Cancels a turn whose client has disconnected.
pub(super) async fn cancel_turn(sessions: &dyn Sessions, session: &SessionId, turn: TurnId) {
    let cancel_turn = Command::CancelTurn { turn, reason: Some(DISCONNECTED.into()) };
    match sessions.submit(session, cancel_turn).await {
        Ok(_) | Err(Error::NotFound(_) | Error::Closing) => {}
        Err(error) => tracing::warn!(%session, %error, "cancelling a run without a client failed"),
    }
}

/// Reads the body of a request as JSON.
async fn json(request: Request) -> Result<Value, Reply> {
    decode::json(&body(request, BODY_LIMIT).await?)
}

/// Reads the body of a request.
pub(super) async fn body(request: Request, limit: usize) -> Result<Bytes, Reply> {
    read_body(request.into_body(), limit).await.map_err(|error| match error {
        BodyError::Broken => Reply::invalid("the request body is incomplete"),
        BodyError::TooLarge => {
            let why = format!("the request body has more than {} MiB", limit >> 20);
            Reply::invalid(why).status(413).code("request_too_large")
        }
    })
}

/// Decodes the percent-encoding of a part of a path.
fn percent_decoded(text: &str) -> String {
    let query = format!("x={}", text.replace('+', "%2B").replace('&', "%26"));
    parameter(&query, "x").unwrap_or_default()
}

pub(super) fn ok(body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The response with a stream of events.
pub(super) fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The response to a request that the access policy refuses.
pub(super) fn refuse(denied: &Denied) -> Response {
    let reply = Reply::invalid(denied.to_string()).status(denied.status());
    error_response(&match denied {
        Denied::Token => reply.code("invalid_api_key"),
        Denied::DuplicateHeader(_) | Denied::Host(_) | Denied::Origin(_) | Denied::Peer(_) => reply,
    })
}

fn error_response(reply: &Reply) -> Response {
    let mut response = ok(&reply.body());
    let status = StatusCode::from_u16(reply.status);
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if !reply.may_retry {
        let name = HeaderName::from_static("x-should-retry");
        headers.insert(name, HeaderValue::from_static("false"));
    }
    if let Some(seconds) = reply.retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
