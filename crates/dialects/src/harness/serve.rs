//! Moves bytes: requests to `decode`, commands to the core, events through `encode` to the client.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use quintet_kernel::command::{Command, NewAttachment, NewMessage};
use quintet_kernel::event::Event;
use quintet_kernel::port::{Error, Follower, Receipt};
use quintet_kernel::{Cursor, SessionId};
use serde::Serialize;
use serde_json::{Value, json};

use super::body::{is_multipart, multipart, read_whole};
use super::decode::{
    BODY_BYTES_LIMIT, FILE_BYTES_LIMIT, File, Reply, Route, Step, decode, error_reply, turn_id,
    upload,
};
use super::encode::Link;
use super::policy::{Policy, PolicyStore};
use super::position::Position;
use super::routes::{REFUSALS, ROUTES, openapi};
use super::stream::{Stream, history, reset};
use super::tree::Tree;
use super::{shape, wire};
use crate::dialect::Services;
use crate::fallback;
use crate::transport::access::Denied;
use crate::transport::query::parameter;
use crate::transport::routes;

/// The most sessions of a list, unless the client sets a limit.
const LIST_LIMIT: usize = 1000;
/// The most files of a folder listing.
const FOLDER_ENTRIES_LIMIT: usize = 800;

/// The settings of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The model of sessions that choose none.
    pub default_model: String,
}

#[derive(Clone)]
struct AppState {
    services: Arc<Services>,
    /// The session tree on disk, if it is written.
    tree: Option<Tree>,
    settings: Arc<Settings>,
    policies: PolicyStore,
}

/// The router of the protocol.
pub(super) fn router(services: Arc<Services>, tree: Option<Tree>, settings: Settings) -> Router {
    let policies = PolicyStore::new(Arc::clone(&services.preferences));
    let app = AppState { services, tree, settings: Arc::new(settings), policies };
    routes::router(ROUTES, REFUSALS, serve).with_state(app)
}

async fn serve(app: AppState, route: Result<Route, Reply>, request: Request) -> Response {
    let response = match route {
        _ if request.method() == Method::OPTIONS => {
            return status(StatusCode::NO_CONTENT, Body::empty());
        }
        Ok(route) => app.respond(route, request).await,
        Err(refused) => Err(refused),
    };
    response.unwrap_or_else(reply)
}

impl AppState {
    async fn health(&self) -> Result<Response, Reply> {
        match self.services.storage_health.check().await {
            Ok(()) => Ok(ok(&json!({ "ok": true, "version": env!("CARGO_PKG_VERSION") }))),
            Err(error) => Err(Reply::new(503, format!("storage cannot be written: {error}"))),
        }
    }

    async fn respond(&self, route: Route, request: Request) -> Result<Response, Reply> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        match &route {
            Route::Health => self.health().await,
            Route::OpenApi => Ok(ok(&openapi())),
            Route::Models => {
                let models = self.services.models.list().await;
                let models: Vec<Value> = models.iter().map(shape::model).collect();
                Ok(ok(&json!({ "models": models, "policy": self.policy().await? })))
            }
            Route::Policy => Ok(ok(&self.policy().await?)),
            Route::SetPolicy => {
                let body = read_whole(request.into_body(), BODY_BYTES_LIMIT).await?;
                let set = self.policies.set(Policy::parse(&body)?).await;
                set.map_err(|error| error_reply(&error.into()))?;
                Ok(ok(&self.policy().await?))
            }
            Route::Folder => self.folder(&query).await,
            Route::Runs => Ok(ok(&json!([]))),
            Route::ListSessions => self.list(&query).await,
            Route::GetSession(id) => {
                let state =
                    self.services.sessions.view(id).await.map_err(|error| error_reply(&error))?;
                Ok(ok(&shape::session(&state)))
            }
            Route::Context(id) => {
                let state =
                    self.services.sessions.view(id).await.map_err(|error| error_reply(&error))?;
                // Counting tokens may first have to read a tokenizer's table.
                let models = Arc::clone(&self.services.models);
                let shown =
                    tokio::task::spawn_blocking(move || shape::whole_context(&state, &*models));
                let shown = shown.await.map_err(|_| Reply::new(500, "counting tokens failed"))?;
                Ok(ok(&shown))
            }
            Route::Changes(id, turn) => {
                let turn = turn_id(turn)?;
                let changes = self.services.inspection.turn_changes(id, &turn).await;
                Ok(ok(&shape::changes(&turn, &changes.map_err(|error| error_reply(&error))?)))
            }
            Route::CheckRevert(id, turn) => {
                let turn = turn_id(turn)?;
                let conflicts = self.services.inspection.revert_conflicts(id, &turn).await;
                let conflicts = conflicts.map_err(|error| error_reply(&error))?;
                Ok(ok(&json!({ "ok": conflicts.is_none(), "reason": conflicts })))
            }
            Route::Events(id) => self.events(id, request.headers(), &query).await,
            Route::Attach(id) if is_multipart(request.headers()) => {
                let file = multipart(request).await?;
                self.dispatch(&route, upload(id, file.name, Some(file.mime), file.content)?).await
            }
            _ => {
                let limit = match route {
                    // Base64 encodes three bytes as four; the rest of the body needs space, too.
                    Route::Attach(_) => FILE_BYTES_LIMIT / 3 * 4 + BODY_BYTES_LIMIT,
                    _ => BODY_BYTES_LIMIT,
                };
                let body = read_whole(request.into_body(), limit).await?;
                self.dispatch(&route, decode(&route, &body)?).await
            }
        }
    }

    async fn dispatch(&self, route: &Route, step: Step) -> Result<Response, Reply> {
        let sessions = &self.services.sessions;
        let submitted = match step {
            Step::Create(origin) => sessions.create(origin).await,
            Step::Submit(id, Command::AddMessage(message)) => {
                self.submit_message(&id, message).await
            }
            Step::Submit(id, command) => sessions.submit(&id, command).await,
            Step::Both(id, both) => {
                let [first, second] = *both;
                match sessions.submit(&id, first).await {
                    Ok(_) => sessions.submit(&id, second).await,
                    Err(error) => Err(error),
                }
            }
            Step::Upload(id, file) => self.store_file(&id, file).await,
        };
        let receipt = match submitted {
            Ok(receipt) => receipt,
            // The original server replies "ok" to every cancel request.
            Err(Error::NotFound(_)) if matches!(route, Route::Cancel(_)) => {
                return Ok(ok(&json!({ "ok": true })));
            }
            // The original server does not distinguish an unknown session from a bad request.
            Err(Error::NotFound(id)) if matches!(route, Route::Approve(_)) => {
                return Err(Reply::new(400, format!("no approvals pending for session {id}")));
            }
            Err(error @ Error::NotFound(_)) if matches!(route, Route::AddMessage(_)) => {
                return Err(Reply::new(400, error.to_string()));
            }
            Err(error) => return Err(error_reply(&error)),
        };
        if let (Route::CreateSession | Route::Attach(_), Some(tree)) = (route, &self.tree) {
            tree.write(&receipt.session).await;
        }
        if let Route::SetMode(id) = route {
            let summary = sessions.summary(id).await.map_err(|error| error_reply(&error))?;
            let shown = shape::summary(&summary);
            return Ok(ok(
                &json!({ "session_id": shown.id, "mode": shown.mode, "spec_path": shown.spec_path }),
            ));
        }
        if let Some(reason) = not_reverted(&receipt) {
            return Err(Reply::new(409, reason));
        }
        Ok(ok(&result(route, &receipt)))
    }

    async fn store_file(&self, session: &SessionId, file: File) -> Result<Receipt, Error> {
        // No content is stored for a session that does not exist.
        self.services.sessions.summary(session).await?;
        let File { name, mime, content } = file;
        let size = content.len() as u64;
        let blob = self.services.blobs.put(content).await?;
        self.services
            .sessions
            .submit(session, Command::Attach(NewAttachment { name, mime, blob, size }))
            .await
    }

    async fn list(&self, query: &str) -> Result<Response, Reply> {
        let limit = match parameter(query, "limit") {
            None => LIST_LIMIT,
            Some(limit) => limit.parse().map_err(|_| Reply::new(400, "limit must be a number"))?,
        };
        let summaries =
            self.services.sessions.list(limit).await.map_err(|error| error_reply(&error))?;
        Ok(ok(&summaries.iter().map(shape::summary).collect::<Vec<_>>()))
    }

    async fn policy(&self) -> Result<Policy, Reply> {
        let policy = self.policies.current().await.map_err(|error| error_reply(&error.into()))?;
        Ok(policy.or_default(&self.settings.default_model))
    }

    /// The files of a folder. The original's page shows them before a session exists.
    async fn folder(&self, query: &str) -> Result<Response, Reply> {
        let path = parameter(query, "workspace_path").filter(|path| !path.trim().is_empty());
        let path = path.ok_or_else(|| Reply::new(400, "workspace_path required"))?;
        let none = || Reply::new(400, "workspace_path must be a directory");
        let folder = Path::new(path.trim());
        if !folder.is_absolute() {
            return Err(none());
        }
        let files = self
            .services
            .directory_listing
            .files(folder, FOLDER_ENTRIES_LIMIT)
            .await
            .map_err(|_| none())?;
        Ok(ok(&json!({ "root": folder, "files": files })))
    }

    /// Submits a message, to the preferred model unless the message or the session names one.
    async fn submit_message(
        &self,
        id: &SessionId,
        mut message: Box<NewMessage>,
    ) -> Result<Receipt, Error> {
        let sessions = &self.services.sessions;
        if message.options.model.is_none()
            && let Some(preferred) = self.policies.preferred_model().await?
            && sessions.summary(id).await?.model.is_none()
        {
            message.options.model = Some(preferred);
            return fallback::submit_message(&**sessions, id, *message).await;
        }
        sessions.submit(id, Command::AddMessage(message)).await
    }

    async fn events(
        &self,
        id: &SessionId,
        headers: &HeaderMap,
        query: &str,
    ) -> Result<Response, Reply> {
        let header = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let requested = parameter(query, "after").or(header.map(Into::into));
        let requested = requested.as_deref().unwrap_or("0");
        let from = Position::parse(requested)
            .ok_or_else(|| Reply::new(400, format!("not a position in the events: {requested}")))?;
        if parameter(query, "format").as_deref() == Some("json") {
            let follow = self.follow(id, from).await.map_err(|error| error_reply(&error))?;
            let limit = match parameter(query, "max").as_deref() {
                None | Some("0") => usize::MAX,
                Some(max) => max.parse().map_err(|_| Reply::new(400, "max must be a number"))?,
            };
            return Ok(json(history(follow, Link::new(id.clone(), from), limit).await?));
        }
        let (follow, stream) = match self.follow(id, from).await {
            Ok(follow) => (follow, Stream { link: Link::new(id.clone(), from), first: Vec::new() }),
            // The client's position is after the end of the session: it is notified and gets everything
            // again.
            Err(Error::Ahead(_, head)) => {
                let start = Position::After(Cursor::START);
                let follow = self.follow(id, start).await.map_err(|error| error_reply(&error))?;
                let summary = self
                    .services
                    .sessions
                    .summary(id)
                    .await
                    .map_err(|error| error_reply(&error))?;
                let first = reset(&summary, requested, head);
                (follow, Stream { link: Link::new(id.clone(), start), first })
            }
            Err(error) => return Err(error_reply(&error)),
        };
        Ok(stream.response(follow))
    }

    async fn follow(&self, id: &SessionId, from: Position) -> Result<Box<dyn Follower>, Error> {
        self.services.sessions.follow(id, from.cursor()).await
    }
}

/// The reason why a turn's changes could not be undone; `None` if they were.
fn not_reverted(receipt: &Receipt) -> Option<&str> {
    receipt.records.iter().find_map(|record| match &record.event {
        Event::RevertFailed { reason, .. } => Some(reason.as_str()),
        _ => None,
    })
}

/// The result of a request, from the events that it caused.
fn result(route: &Route, receipt: &Receipt) -> Value {
    let mut body = match route {
        Route::CreateSession => json!({ "session_id": receipt.session.as_str() }),
        Route::AddMessage(_) | Route::Attach(_) => json!({}),
        _ => json!({ "ok": true }),
    };
    if let Some(added) = receipt.message() {
        body["message_id"] = added.message.as_str().into();
        body["turn_id"] = added.turn.as_str().into();
    }
    for record in &receipt.records {
        match &record.event {
            Event::Reverted { files, more, .. } => {
                body["files"] = json!(files);
                if *more > 0 {
                    body["more"] = json!(more);
                }
            }
            Event::AttachmentAdded(file) => {
                body["ref"] = format!("attachments/{}", file.name).into();
                body["mime_type"] = file.mime.as_str().into();
            }
            Event::SessionCreated(origin) => {
                if let Some(path) = origin.labels.get("spec_path") {
                    body["spec_path"] = path.as_str().into();
                }
            }
            _ => {}
        }
    }
    body
}

/// The response to a request that the access policy refuses.
pub(super) fn refuse(denied: &Denied) -> Response {
    match denied {
        Denied::Token => status(StatusCode::UNAUTHORIZED, Body::empty()),
        Denied::DuplicateHeader(_) | Denied::Host(_) | Denied::Origin(_) | Denied::Peer(_) => {
            reply(Reply::new(denied.status(), denied.to_string()))
        }
    }
}

fn reply(reply: Reply) -> Response {
    let code = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match reply.error {
        None if code == StatusCode::OK => ok(&json!({ "ok": true })),
        None => status(code, Body::empty()),
        Some(error) => {
            let mut response = ok(&wire::ErrorBody { error: &error });
            *response.status_mut() = code;
            response
        }
    }
}

fn ok(body: &impl Serialize) -> Response {
    json(Body::from(serde_json::to_vec(body).expect("our own types serialize")))
}

fn json(body: Body) -> Response {
    let mut response = status(StatusCode::OK, body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn status(code: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response
}
